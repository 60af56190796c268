//! What is left to whoever is refused.

use diesel_async::SimpleAsyncConnection as _;
use dlock_fence::postgres::{Fence, FenceError};
use dlock_servers::PostgresVersion;

use crate::{
    on_both,
    support::{Place, assert_stale, batch, token},
};

on_both! {
    after_a_refusal_the_transaction_still_stands
    without_a_transaction_nothing_passes_and_nothing_is_sent
    without_the_table_it_is_the_databases_error
    a_row_that_a_trigger_swallows_lets_nothing_through
}

async fn after_a_refusal_the_transaction_still_stands(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.write(5).await.unwrap();
    writer.begin().await;
    assert_stale(writer.pass(4).await, 4, 5);
    writer.run("CREATE TABLE remarks AS SELECT 'refused' AS remark").await;
    // Asking again makes it no better.
    assert_stale(writer.pass(4).await, 4, 5);
    writer.commit().await;
    assert_eq!(writer.number("SELECT count(*) AS number FROM remarks").await, 1);
    assert_eq!(writer.mark().await, 5);
}

async fn without_a_transaction_nothing_passes_and_nothing_is_sent(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    let ended = writer.pass(5).await;
    assert!(matches!(ended, Err(FenceError::NoTransaction)), "{ended:?}");
    assert_eq!(writer.mark().await, 0);
}

async fn without_the_table_it_is_the_databases_error(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.anywhere().await;
    writer.begin().await;
    let elsewhere = Fence::in_schema("pg_catalog").unwrap();
    let ended = elsewhere.pass(&mut writer.connection, &batch(), token(1)).await;
    assert!(matches!(&ended, Err(FenceError::Database(_))), "{ended:?}");
    writer.roll_back().await;
}

async fn a_row_that_a_trigger_swallows_lets_nothing_through(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.run("CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'").await;
    writer.run("CREATE TRIGGER swallow BEFORE INSERT ON dlock_fence FOR EACH ROW EXECUTE FUNCTION swallow()").await;
    let ended = writer.write(1).await;
    assert!(matches!(&ended, Err(FenceError::Database(_))), "{ended:?}");
    let called = writer.connection.batch_execute("SELECT dlock_fence_pass('r', 1)").await;
    assert!(called.is_err());
    assert_eq!(writer.written().await, [0_i64; 0]);
}
