//! Trap 26: batches that name a key twice, or in another order than others do.

use dlock_conformance::kit::{key, long, of};
use dlock_domain::{FencingToken, LockKey};

use crate::kit::Place;

/// A batch in one statement.
const NAIVE: &str = "\
INSERT INTO naive_held (name) SELECT unnest($1::text[]) \
ON CONFLICT (name) DO UPDATE SET kept = naive_held.kept + 1";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_26_a_grant_may_be_listed_twice() {
    let mut place = Place::new().await;
    let raw = place.raw().await;
    raw.run("CREATE TABLE naive_held (name text PRIMARY KEY, kept int NOT NULL DEFAULT 0)").await;
    let twice = vec!["a", "b", "a"];
    let refused = raw.client.execute(NAIVE, &[&twice]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "21000");

    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    let one = a.take(&key("a"), &of(&session)).await;
    let two = a.take(&key("b"), &of(&session)).await;
    let kept = a.keep(&session.id, &[&one, &two, &one, &one, &two]).await.unwrap();
    assert_eq!(kept.lost, []);
    assert!(a.release(&two).await);
    let kept = a.keep(&session.id, &[&two, &one, &two, &one]).await.unwrap();
    let lost = (two.key.clone(), two.token);
    assert_eq!(kept.lost, [lost.clone(), lost], "as often as it was asked for");
}

/// Two batches of the same rows in opposite orders.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_26_batches_in_any_order_make_no_deadlock() {
    let mut place = Place::new().await;
    let (one, two) = (place.raw().await, place.raw().await);
    one.run(
        "CREATE TABLE naive_held (name text PRIMARY KEY, kept int NOT NULL DEFAULT 0); \
         INSERT INTO naive_held VALUES ('a'), ('b')",
    )
    .await;
    let keep = |name: &str| format!("UPDATE naive_held SET kept = kept + 1 WHERE name = '{name}'");
    one.run(&format!("BEGIN; SET LOCAL deadlock_timeout = '10ms'; {}", keep("a"))).await;
    two.run(&format!("BEGIN; SET LOCAL deadlock_timeout = '10ms'; {}", keep("b"))).await;
    let other_way = keep("b");
    let first = tokio::spawn(async move {
        let done = one.client.batch_execute(&other_way).await;
        one.run("ROLLBACK").await;
        done
    });
    let second = two.client.batch_execute(&keep("a")).await;
    two.run("ROLLBACK").await;
    let refused = [first.await.unwrap().err(), second.err()];
    let codes: Vec<_> = refused.iter().flatten().filter_map(|e| e.code()).collect();
    assert_eq!(codes.len(), 1, "{refused:?}");
    assert_eq!(codes[0].code(), "40P01");

    // Ours takes the session's row and no other: whoever has all the locks' rows in his hands does
    // not hold it up.
    let (a, b) = (place.caller().await, place.caller().await);
    let session = a.open("worker", long()).await;
    let mut listed: Vec<(LockKey, FencingToken)> = Vec::new();
    for n in 0..40 {
        let handle = a.take(&key(&format!("k{n}")), &of(&session)).await;
        listed.push((handle.key, handle.token));
    }
    let other = place.raw().await;
    other.run("BEGIN; SELECT FROM dlock_locks FOR UPDATE").await;
    assert_eq!(a.keep_listed(&session.id, &listed).await.unwrap().lost, []);
    other.run("COMMIT").await;

    // Two servers keep it at once, in shuffled orders, while somebody extends single grants.
    let mut all = Vec::new();
    for n in 0..40 {
        let (caller, id, mut list) = (if n % 2 == 0 { &a } else { &b }, session.id, listed.clone());
        if n % 4 < 2 {
            list.reverse();
        }
        list.rotate_left(n);
        let (caller, one) = (caller.clone(), list[0].clone());
        all.push(tokio::spawn(async move {
            assert_eq!(caller.keep_listed(&id, &list).await.unwrap().lost, []);
            assert!(caller.extend_token(&one.0, one.1).await.is_some());
        }));
    }
    for one in all {
        one.await.unwrap();
    }
}
