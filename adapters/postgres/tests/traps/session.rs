//! Trap 25: what a statement saw before it waited says nothing about now.

use std::time::Duration;

use dlock_conformance::kit::{granted, held, key, long, millis, of, owner, private, private_for};

use crate::kit::{Place, Raw, bytes};

/// Whether the asking session is there is looked at once, before the row is waited for.
const NAIVE_OWN: &str = "\
UPDATE naive_locks SET session = 1 WHERE name = 'k' AND session IS NULL \
AND EXISTS (SELECT FROM naive_sessions WHERE id = 1)";

/// Whether the holder's session is there is looked at with the picture from before the wait, though
/// the row itself is read again.
const NAIVE_HOLDER: &str = "\
UPDATE naive_locks l SET session = 1 WHERE l.name = 'k' \
AND NOT EXISTS (SELECT FROM naive_sessions s WHERE s.id = l.session)";

/// A keep-alive in one statement.
const NAIVE_KEEP: &str = "\
UPDATE naive_sessions SET expires_at = clock_timestamp() + '1 hour' \
WHERE id = 1 AND expires_at > clock_timestamp()";

async fn naive_tables(raw: &Raw) {
    raw.run(
        "CREATE TABLE naive_sessions (id int PRIMARY KEY, expires_at timestamptz); \
         CREATE TABLE naive_locks (name text PRIMARY KEY, session int); \
         INSERT INTO naive_locks VALUES ('k', NULL)",
    )
    .await;
}

/// A row for a lock that nobody holds.
async fn a_free_lock(place: &mut Place) -> dlock_conformance::kit::Caller {
    let a = place.caller().await;
    let before = a.take(&key("k"), &private("before")).await;
    assert!(a.release(&before).await);
    a
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_25_nothing_is_granted_to_a_session_that_was_closed_meanwhile() {
    let mut place = Place::new().await;
    let (other, asks) = (place.raw().await, place.raw().await);
    naive_tables(&other).await;
    other.run("INSERT INTO naive_sessions VALUES (1, clock_timestamp() + '1 hour')").await;
    other.run("BEGIN; SELECT FROM naive_locks WHERE name = 'k' FOR UPDATE").await;
    let waits = tokio::spawn(async move { asks.client.execute_typed(NAIVE_OWN, &[]).await });
    place.waiting(1).await;
    place.eye.run("DELETE FROM naive_sessions WHERE id = 1").await;
    other.run("COMMIT").await;
    assert_eq!(waits.await.unwrap().unwrap(), 1, "granted");
    let sessions = place.eye.number("SELECT count(*) FROM naive_sessions").await;
    assert_eq!(sessions, 0, "to a session that is not there");

    // Ours: the session cannot end while an acquire of it is under way; it ends right after.
    let a = a_free_lock(&mut place).await;
    let session = a.open("worker", long()).await;
    other.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let (asks, as_worker) = (a.clone(), of(&session));
    let waits = tokio::spawn(async move { asks.take(&key("k"), &as_worker).await });
    place.waiting(1).await;
    let (closes, id) = (a.clone(), session.id);
    let closed = tokio::spawn(async move { closes.close(&id).await });
    place.waiting(2).await;
    assert!(!closed.is_finished());
    other.run("COMMIT").await;
    let handle = waits.await.unwrap();
    assert!(closed.await.unwrap());
    assert!(!a.release(&handle).await, "its grant ended with it");
    a.take(&key("k"), &private("next")).await;
}

/// The same where the session is closed first: then it is known that there is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_25_a_session_that_is_being_closed_is_waited_for() {
    let mut place = Place::new().await;
    let a = a_free_lock(&mut place).await;
    let other = place.raw().await;
    let session = a.open("worker", long()).await;
    other.run(&format!("BEGIN; DELETE FROM dlock_sessions WHERE id = {}", bytes(session.id))).await;
    let (asks, as_worker) = (a.clone(), of(&session));
    let waits = tokio::spawn(async move {
        asks.insert(&key("k"), &as_worker, dlock_conformance::kit::attempt()).await
    });
    place.waiting(1).await;
    other.run("COMMIT").await;
    let refused = waits.await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), dlock_domain::ErrorKind::SessionExpired);
    a.take(&key("k"), &private("next")).await;
}

/// The lock is free when the asking statement begins, and its row in somebody's hands, who opens a
/// session and takes the lock with it. No id is used twice, and yet the session that "is not there"
/// in the old picture is alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_25_a_session_born_during_the_wait_keeps_its_lock() {
    let mut place = Place::new().await;
    let (other, asks) = (place.raw().await, place.raw().await);
    naive_tables(&other).await;
    other.run("BEGIN; SELECT FROM naive_locks WHERE name = 'k' FOR UPDATE").await;
    let waits = tokio::spawn(async move { asks.client.execute_typed(NAIVE_HOLDER, &[]).await });
    place.waiting(1).await;
    other
        .run(
            "INSERT INTO naive_sessions VALUES (2, clock_timestamp() + '1 hour'); \
             UPDATE naive_locks SET session = 2 WHERE name = 'k'; COMMIT",
        )
        .await;
    assert_eq!(waits.await.unwrap().unwrap(), 1, "granted");
    let alive = "SELECT count(*) FROM naive_sessions WHERE id = 2 AND expires_at > now()";
    assert_eq!(place.eye.number(alive).await, 1, "though its holder is alive");

    let a = a_free_lock(&mut place).await;
    other.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let asks = a.clone();
    let waits = tokio::spawn(async move {
        asks.insert(&key("k"), &private("second"), dlock_conformance::kit::attempt()).await
    });
    place.waiting(1).await;
    other
        .run(
            "INSERT INTO dlock_sessions VALUES \
             (decode(repeat('ab', 16), 'hex'), 'other', 3600000, clock_timestamp() + '1 hour', true); \
             UPDATE dlock_locks SET session = decode(repeat('ab', 16), 'hex'), \
             attempt = decode(repeat('cd', 16), 'hex'), acquired_at = clock_timestamp(), \
             fence = nextval('dlock_fencing_token_seq') WHERE name = 'k'; COMMIT",
        )
        .await;
    held(waits.await.unwrap());
    assert_eq!(a.read(&key("k")).await.unwrap().owner.as_str(), "other");
}

/// Two servers acquire a free lock in the same moment, both with private sessions: the loser meets
/// the winner, never takes from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_25_whoever_waited_for_a_private_grant_meets_it() {
    let mut place = Place::new().await;
    let a = a_free_lock(&mut place).await;
    let other = place.raw().await;
    other.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let mut waits = Vec::new();
    for n in 1..=4 {
        let asks = a.clone();
        waits.push(tokio::spawn(async move {
            asks.insert(&key("k"), &private(&format!("w{n}")), dlock_conformance::kit::attempt())
                .await
                .unwrap()
        }));
        place.waiting(n).await;
    }
    other.run("COMMIT").await;
    let mut granted = 0;
    for one in waits {
        granted += u32::from(matches!(one.await.unwrap(), dlock_ports::Attempt::Granted(_)));
    }
    assert_eq!(granted, 1);
}

/// A lease ends while its keep-alive and a thief wait for its row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_25_either_the_keep_alive_or_the_next_holder_wins() {
    let mut place = Place::new().await;
    let (thief, keeper) = (place.raw().await, place.raw().await);
    naive_tables(&thief).await;
    thief
        .run(
            "INSERT INTO naive_sessions VALUES (1, clock_timestamp() + '3 seconds'); \
             UPDATE naive_locks SET session = 1 WHERE name = 'k'",
        )
        .await;
    thief.run("BEGIN; SELECT FROM naive_sessions WHERE id = 1 FOR UPDATE").await;
    let kept = tokio::spawn(async move { keeper.client.execute_typed(NAIVE_KEEP, &[]).await });
    place.waiting(1).await;
    let ended = "SELECT (expires_at <= clock_timestamp())::int::bigint FROM naive_sessions";
    place.eye.becomes(ended, 1).await;
    assert_eq!(thief.number(ended).await, 1, "it steals under the row's lock");
    thief.run("UPDATE naive_locks SET session = 2; COMMIT").await;
    assert_eq!(kept.await.unwrap().unwrap(), 1, "and the keep-alive succeeds all the same");

    // Ours: stealing is deleting, and the keep-alive looks after it has the row.
    let (a, b) = (place.caller().await, place.caller().await);
    let session = a.open("worker", millis(2_000)).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let other = place.raw().await;
    other.run("BEGIN; SELECT FROM dlock_sessions FOR UPDATE").await;
    let (keeps, id, listed) = (a.clone(), session.id, handle.clone());
    let kept = tokio::spawn(async move { keeps.keep(&id, &[&listed]).await });
    place.waiting(1).await;
    let ended = "SELECT (expires_at <= clock_timestamp())::int::bigint FROM dlock_sessions";
    place.eye.becomes(ended, 1).await;
    let steals = b.clone();
    let stolen = tokio::spawn(async move {
        steals.insert(&key("k"), &private("thief"), dlock_conformance::kit::attempt()).await
    });
    place.waiting(2).await;
    other.run("COMMIT").await;
    assert!(kept.await.unwrap().is_none(), "it had ended");
    let stolen = granted(stolen.await.unwrap());
    assert!(stolen.token > handle.token);
    assert!(a.extend(&handle).await.is_none());

    // In time, the keep-alive wins.
    let minute = Duration::from_secs(60);
    let own = a.take(&key("own"), &private_for("worker", millis(60_000))).await;
    other.run("BEGIN; SELECT FROM dlock_sessions FOR UPDATE").await;
    let (extends, of_it) = (a.clone(), own.clone());
    let extended = tokio::spawn(async move { extends.extend(&of_it).await });
    place.waiting(1).await;
    b.meet(&key("own"), &private("thief")).await;
    other.run("COMMIT").await;
    assert_eq!(extended.await.unwrap().unwrap().ttl.as_duration(), minute);
}

/// Who looks sees the row as it was before the keep-alive that is being committed, and its old end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn inv07_a_session_that_is_being_kept_alive_is_not_gone() {
    for asks in ["a look", "an acquire", "a recovery"] {
        let mut place = Place::new().await;
        let a = place.caller().await;
        let other = place.raw().await;
        let session = a.open("worker", millis(1_000)).await;
        let named = dlock_conformance::kit::attempt();
        let held = a.take_as(&key("held"), &of(&session), named).await;
        other
            .run(
                "BEGIN; UPDATE dlock_sessions SET expires_at = clock_timestamp() + '1 hour'; \
                 SELECT pg_sleep(1.2)",
            )
            .await;
        let call = a.clone();
        let asked = tokio::spawn(async move {
            match asks {
                "a look" => assert_eq!(call.look(&session.id).await.unwrap().1.len(), 1),
                "an acquire" => drop(call.take(&key("k"), &of(&session)).await),
                _ => {
                    let found = call
                        .shot(&key("held"), &of(&session), named, dlock_ports::Intent::Recover)
                        .await;
                    assert_eq!(granted(found).token, held.token);
                }
            }
        });
        place.waiting(1).await;
        other.run("COMMIT").await;
        asked.await.unwrap_or_else(|error| panic!("{asks}: {error}"));
    }
}

/// An id that lives again has nothing of what it held before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_is_opened_again_holds_nothing() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    let held = a.take(&key("k"), &of(&session)).await;
    assert!(a.close(&session.id).await);
    let by = crate::kit::soon(&a, 10_000);
    let opened = a.backend.sessions.open(owner("worker"), long(), Some(session.id), by).await;
    assert_eq!(opened.unwrap().id, session.id);
    assert!(a.extend(&held).await.is_none());
    assert_eq!(a.look(&session.id).await.unwrap().1, []);
    assert_eq!(a.read(&key("k")).await, None);
}
