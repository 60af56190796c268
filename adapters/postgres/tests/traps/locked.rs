//! C45: one of our tables is locked by somebody, for two lifetimes.

use std::time::Duration;

use dlock_conformance::kit::{attempt, key, millis, of, owner, private, private_for};

use crate::kit::{Place, bytes, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c45_while_a_table_is_locked_calls_end_in_time_and_loss_is_right() {
    for table in ["dlock_locks", "dlock_sessions", "dlock_meta"] {
        let mut place = Place::new().await;
        let a = place.caller().await;
        let session = a.open("worker", millis(2_000)).await;
        let held = a.take(&key("held"), &of(&session)).await;
        let own = a.take(&key("own"), &private_for("worker", millis(2_000))).await;
        let other = place.raw().await;
        other.run("BEGIN").await;
        other.run(&format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")).await;

        // Everything, over two lifetimes.
        let began = a.now();
        let mut failed = 0;
        while a.now().since(began) < Duration::from_secs(4) {
            let (locks, sessions) = (&a.backend.locks, &a.backend.sessions);
            let by = soon(&a, 150);
            let request = dlock_ports::InsertRequest {
                key: key("free"),
                holder: private_for("next", millis(2_000)),
                attempt: attempt(),
                intent: dlock_ports::Intent::Acquire,
            };
            let (listed, none) = ([(held.key.clone(), held.token)], key("none"));
            let called = a.now();
            let (taken, extended, kept, opened, released) = tokio::join!(
                locks.try_insert(request, by),
                locks.extend(&own.key, own.token, by),
                sessions.keep_alive(&session.id, &listed, by),
                sessions.open(owner("next"), millis(2_000), None, by),
                locks.delete_if_owner(&none, own.token, by),
            );
            let took = a.now().since(called);
            assert!(took < Duration::from_secs(5), "{took:?}");
            let errors = [taken.err(), extended.err(), kept.err(), opened.err(), released.err()];
            for error in errors.into_iter().flatten() {
                assert!(error.is_transient(), "INV-07: {error:?}");
                failed += 1;
            }
        }
        assert!(failed > 0, "{table}: nobody noticed");
        other.run("COMMIT").await;

        // One that was sent in time may have been done when the table was let go; then the lease is
        // as long as it says. What is not kept any more ends.
        for id in [session.id, own.session] {
            let sql = format!(
                "SELECT count(*) FROM dlock_sessions WHERE id = {} \
                 AND expires_at > clock_timestamp()",
                bytes(id)
            );
            place.eye.becomes(&sql, 0).await;
        }
        assert!(a.keep(&session.id, &[&held]).await.is_none(), "{table}");
        assert!(a.extend(&own).await.is_none(), "{table}");
        for name in ["held", "own"] {
            let next = a.take(&key(name), &private("next")).await;
            assert!(next.token > own.token, "{table}");
            assert!(a.release(&next).await);
        }
        // Nobody is left in the middle of anything.
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' \
             AND (state LIKE 'idle in transaction%' OR wait_event_type = 'Lock')",
            place.schema
        );
        place.eye.becomes(&sql, 0).await;
    }
}

/// Looking for the grants took longer than the lease lasts: the answer is no success that has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c40_c45_a_keep_alive_that_looked_beyond_its_lease_says_gone() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let session = a.open("worker", millis(1_000)).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let other = place.raw().await;
    other.run("BEGIN; LOCK TABLE dlock_locks IN ACCESS EXCLUSIVE MODE").await;
    let (keeps, id, listed) = (a.clone(), session.id, handle.clone());
    let kept = tokio::spawn(async move { keeps.keep(&id, &[&listed]).await });
    place.waiting(1).await;
    place.eye.run("SELECT pg_sleep(2)").await;
    other.run("COMMIT").await;
    assert!(kept.await.unwrap().is_none());
}
