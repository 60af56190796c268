//! Every isolation level: stale writes end in a refusal or in 40001, never in the table.

use dlock_servers::PostgresVersion;

use crate::{
    on_both,
    support::{Place, assert_serialization, assert_stale},
};

on_both! {
    a_transaction_that_began_before_a_higher_mark_never_writes_behind_it
    a_transaction_that_waits_for_a_higher_mark_never_writes_behind_it
    holders_pass_at_every_level
}

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

async fn a_transaction_that_began_before_a_higher_mark_never_writes_behind_it(
    version: PostgresVersion,
) {
    for level in LEVELS {
        for marked in [false, true] {
            let place = Place::new(version).await;
            let (mut old, mut new) = (place.writer().await, place.writer().await);
            if marked {
                old.write(1).await.unwrap();
            }
            old.begin_at(level).await;
            // Its snapshot, where the level has one for the whole transaction.
            assert_eq!(old.mark().await, i64::from(marked));
            new.write(5).await.unwrap();
            let ended = old.pass(4).await;
            if level == "READ COMMITTED" {
                assert_stale(ended, 4, 5);
            } else {
                assert_serialization(ended);
            }
            old.roll_back().await;
            // Trying again tells it so.
            old.begin_at(level).await;
            assert_stale(old.pass(4).await, 4, 5);
            old.roll_back().await;
        }
    }
}

async fn a_transaction_that_waits_for_a_higher_mark_never_writes_behind_it(
    version: PostgresVersion,
) {
    for level in LEVELS {
        let place = Place::new(version).await;
        let (mut old, mut new) = (place.writer().await, place.writer().await);
        new.begin_at(level).await;
        new.pass(5).await.unwrap();
        let pid = old.pid().await;
        let waiting = tokio::spawn(async move {
            old.begin_at(level).await;
            old.pass(4).await
        });
        place.writer().await.until_waits(pid).await;
        new.commit().await;
        let ended = waiting.await.unwrap();
        if level == "READ COMMITTED" {
            assert_stale(ended, 4, 5);
        } else {
            assert_serialization(ended);
        }
    }
}

async fn holders_pass_at_every_level(version: PostgresVersion) {
    for level in LEVELS {
        let place = Place::new(version).await;
        let mut writer = place.writer().await;
        for number in [2, 2, 3] {
            writer.begin_at(level).await;
            writer.pass(number).await.unwrap();
            writer.pass(number).await.unwrap();
            writer.commit().await;
        }
        assert_eq!(writer.mark().await, 3);
    }
}
