//! What is kept of what has long been over, and at most how much.

use dlock_conformance::kit::{attempt, key, private};
use dlock_domain::ErrorKind;

use crate::kit::{Place, soon};

/// The newest notes of who broke what, and the newest marks of private attempts, whose age alone would
/// bound them by how busy a week is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_and_marks_are_kept_up_to_a_number() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    place
        .eye
        .run(
            "INSERT INTO dlock_revocations (namespace, name, floor, actor, reason, revoked_at) \
             SELECT 'default', 'k', n, 'ops', 'why', clock_timestamp() FROM generate_series(1, 10020) n; \
             INSERT INTO dlock_settled (session, attempt, settled_at) \
             SELECT '', decode(lpad(to_hex(n), 32, '0'), 'hex'), \
               clock_timestamp() + n * interval '1 microsecond' FROM generate_series(1, 100030) n",
        )
        .await;
    a.reap(1_000).await;
    let notes = "SELECT count(*) * 100000 + min(floor) FROM dlock_revocations";
    assert_eq!(place.eye.number(notes).await, 10_000 * 100_000 + 21, "the newest");
    let marks = "SELECT count(*) FROM dlock_settled";
    assert_eq!(place.eye.number(marks).await, 100_000);
    let oldest =
        "SELECT count(*) FROM dlock_settled WHERE attempt = decode(lpad('1', 32, '0'), 'hex')";
    assert_eq!(place.eye.number(oldest).await, 0);
}

/// The lock's row is purged while a mark is being made: it then held nobody off who grants, so nothing
/// is said to be settled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_12_a_mark_beside_a_row_that_was_purged_is_made_again() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&handle).await);
    let purges = place.raw().await;
    purges.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let forgets = a.clone();
    let (named, by) = (attempt(), soon(&a, 20_000));
    let forgotten = tokio::spawn(async move {
        forgets.backend.sessions.forget(&key("k"), &private("worker"), named, by).await
    });
    place.waiting(1).await;
    purges.run("DELETE FROM dlock_locks WHERE name = 'k'; COMMIT").await;
    let refused = forgotten.await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contention);
    assert!(!a.forget(&key("k"), &private("worker"), named).await, "and then it is");
}
