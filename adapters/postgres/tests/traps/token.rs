//! Trap 23: a token that is drawn before the row is waited for is lower than one that was granted
//! meanwhile.

use std::sync::{Arc, Mutex};

use dlock_conformance::kit::{attempt, key, private};
use dlock_ports::Attempt;

use crate::kit::Place;

/// Draws while it is still to be found out whether the row is free.
const NAIVE: &str = "\
INSERT INTO naive_locks (name, token) VALUES ('k', nextval('naive_tokens')) \
ON CONFLICT (name) DO UPDATE SET token = EXCLUDED.token RETURNING token";

/// One has the lock's row in its hands; another asks, and waits; then the first is granted the lock
/// and leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_23_the_token_is_drawn_under_the_rows_lock() {
    let mut place = Place::new().await;
    let (first, second) = (place.raw().await, place.raw().await);
    first
        .run(
            "CREATE SEQUENCE naive_tokens; \
             CREATE TABLE naive_locks (name text PRIMARY KEY, token bigint); \
             INSERT INTO naive_locks VALUES ('k', 0)",
        )
        .await;
    first.run("BEGIN; SELECT FROM naive_locks WHERE name = 'k' FOR UPDATE").await;
    let waits = tokio::spawn(async move { second.number(NAIVE).await });
    place.waiting(1).await;
    let granted_first = first.number(NAIVE).await;
    first.run("COMMIT").await;
    let granted_second = waits.await.unwrap();
    assert_eq!((granted_first, granted_second), (2, 1), "the later grant has the lower token");

    let a = place.caller().await;
    let before = a.take(&key("k"), &private("before")).await;
    assert!(a.release(&before).await);
    first.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let asks = a.clone();
    let waits =
        tokio::spawn(async move { asks.take(&key("k"), &private("second")).await.token.get() });
    place.waiting(1).await;
    let drawn = first.number("SELECT last_value FROM dlock_fencing_token_seq").await;
    assert_eq!(
        u64::try_from(drawn).unwrap(),
        before.token.get(),
        "nothing is drawn while it waits"
    );
    let granted_first = first
        .number("UPDATE dlock_locks SET fence = nextval('dlock_fencing_token_seq') RETURNING fence")
        .await;
    first.run("COMMIT").await;
    let granted_second = waits.await.unwrap();
    assert!(u64::try_from(granted_first).unwrap() < granted_second);
}

/// C46: fifty contend for one lock, at two servers; each notes its token while it holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c46_fifty_contenders_get_tokens_that_rise_in_grant_order() {
    const GRANTS: usize = 400;
    let mut place = Place::new().await;
    let servers = [place.caller().await, place.caller().await];
    let noted = Arc::new(Mutex::new(Vec::new()));
    let mut contenders = Vec::new();
    for n in 0..50 {
        let (a, noted) = (servers[n % 2].clone(), Arc::clone(&noted));
        contenders.push(tokio::spawn(async move {
            while noted.lock().unwrap().len() < GRANTS {
                let asked = a.insert(&key("k"), &private("contender"), attempt()).await.unwrap();
                if let Attempt::Granted(handle) = asked {
                    noted.lock().unwrap().push(handle.token);
                    assert!(a.release(&handle).await);
                }
            }
        }));
    }
    for contender in contenders {
        contender.await.unwrap();
    }
    let noted = noted.lock().unwrap();
    assert!(noted.len() >= GRANTS);
    assert!(noted.is_sorted_by(|earlier, later| earlier < later), "{noted:?}");
}
