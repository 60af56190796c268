//! What suggests itself and lets stale writes through, or cannot say what refused them. These stay,
//! to show that the tests beside them see the difference.

use diesel::{OptionalExtension as _, sql_query, sql_types::BigInt};
use diesel_async::RunQueryDsl as _;
use dlock_servers::PostgresVersion;

use crate::{
    on_both,
    support::{Place, assert_stale},
};

on_both! {
    a_naive_check_in_the_program_lets_a_stale_write_through
    a_naive_pass_in_a_transaction_of_its_own_lets_a_stale_write_through
    trap_40_a_naive_holder_that_reads_first_misses_its_predecessors_write
    a_naive_statement_that_looks_the_mark_up_cannot_name_it
}

#[derive(diesel::QueryableByName)]
struct Answer {
    #[diesel(sql_type = diesel::sql_types::Nullable<BigInt>)]
    mark: Option<i64>,
}

/// Reads the mark, compares in the program, then writes.
async fn a_naive_check_in_the_program_lets_a_stale_write_through(version: PostgresVersion) {
    let place = Place::new(version).await;
    let (mut old, mut new) = (place.writer().await, place.writer().await);
    old.write(3).await.unwrap();
    old.begin().await;
    let (mine, seen) = (4, old.mark().await);
    assert!(seen <= mine, "so it goes on");
    new.write(5).await.unwrap();
    old.run("UPDATE dlock_fence SET mark = 4; INSERT INTO written (token) VALUES (4)").await;
    old.commit().await;
    assert_eq!(old.written().await, [3, 5, 4], "and the mark is lower than before");
    assert_eq!(old.mark().await, 4);
}

/// Passes in one transaction and writes in the next.
async fn a_naive_pass_in_a_transaction_of_its_own_lets_a_stale_write_through(
    version: PostgresVersion,
) {
    let place = Place::new(version).await;
    let (mut old, mut new) = (place.writer().await, place.writer().await);
    old.begin().await;
    old.pass(4).await.unwrap();
    old.commit().await;
    new.write(5).await.unwrap();
    old.run("INSERT INTO written (token) VALUES (4)").await;
    assert_eq!(old.written().await, [5, 4]);
}

/// Lets a new holder read before its token is at the resource.
async fn trap_40_a_naive_holder_that_reads_first_misses_its_predecessors_write(
    version: PostgresVersion,
) {
    let place = Place::new(version).await;
    let (mut old, mut new) = (place.writer().await, place.writer().await);
    assert_eq!(new.written().await, [0_i64; 0]);
    old.write(4).await.unwrap();
    new.write(5).await.unwrap();
    assert_eq!(new.written().await, [4, 5], "what it did not know of when it wrote");
    // With its token first, what it reads afterwards is all there will ever be.
    new.begin().await;
    new.pass(6).await.unwrap();
    new.commit().await;
    let read = new.written().await;
    assert_stale(old.write(5).await, 5, 6);
    assert_eq!(new.written().await, read);
}

/// Updates only a lower mark and looks the higher one up in the same statement: behind a wait it
/// sees the table as it was before.
async fn a_naive_statement_that_looks_the_mark_up_cannot_name_it(version: PostgresVersion) {
    const NAIVE: &str = "WITH passed AS (
            INSERT INTO dlock_fence AS held VALUES ('payments/batch-17', 4)
            ON CONFLICT (resource) DO UPDATE SET mark = 4 WHERE held.mark <= 4
            RETURNING mark
        )
        SELECT mark FROM passed UNION ALL
        SELECT mark FROM dlock_fence WHERE resource = 'payments/batch-17' AND mark > 4";
    let place = Place::new(version).await;
    let (mut old, mut new) = (place.writer().await, place.writer().await);
    new.begin().await;
    new.pass(5).await.unwrap();
    let pid = old.pid().await;
    let waiting = tokio::spawn(async move {
        let answer = sql_query(NAIVE).get_result::<Answer>(&mut old.connection).await.optional();
        answer.unwrap().and_then(|answer| answer.mark)
    });
    place.writer().await.until_waits(pid).await;
    new.commit().await;
    assert_eq!(waiting.await.unwrap(), None, "refused, and by nobody");
}
