//! Behind a pooler that gives out connections for one transaction each (trap 31).

use dlock_servers::PostgresVersion;
use tokio::task::JoinSet;

use crate::{
    on_both,
    support::{Place, assert_stale, batch, token},
};

on_both! {
    trap_31_writers_behind_pgbouncer_keep_the_order_of_their_tokens
}

async fn trap_31_writers_behind_pgbouncer_keep_the_order_of_their_tokens(version: PostgresVersion) {
    let place = Place::new(version).await;
    let pooler = place.pooler();
    // While nobody else is there: diesel-async sets up a connection by statements that it names, which
    // the pooler may lose as soon as connections change hands.
    let mut writers = Vec::new();
    for number in 1..=12 {
        writers.push((number, place.through(&pooler).await));
    }
    let mut running = JoinSet::new();
    for (number, mut writer) in writers {
        // The schema is the fence's own affair: no search path lasts longer than a transaction.
        let sql = format!("INSERT INTO {}.written (token) VALUES ({number})", place.quoted());
        running.spawn(async move {
            for _ in 0..5 {
                writer.begin().await;
                if writer.pass(number).await.is_ok() {
                    writer.run(&sql).await;
                }
                writer.commit().await;
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.unwrap();
    }
    let written = place.writer().await.written().await;
    assert!(written.is_sorted(), "{written:?}");
    assert_eq!(written.iter().filter(|number| **number == 12).count(), 5);

    let mut late = place.through(&pooler).await;
    late.begin().await;
    assert_stale(place.fence.pass(&mut late.connection, &batch(), token(11)).await, 11, 12);
    late.roll_back().await;
}
