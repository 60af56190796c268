//! Trap 24 and C40: a lease is counted from now, not from when the waiting for its row began.

use dlock_conformance::kit::{key, millis, ns, of, private_for};
use dlock_domain::Ttl;
use dlock_ports::ListRequest;

use crate::kit::{Place, Raw, bytes};

/// Computes the new time, and then waits.
const NAIVE: &str = "\
UPDATE naive_sessions SET expires_at = clock_timestamp() + ttl \
WHERE id = 1 AND expires_at > clock_timestamp() \
RETURNING floor(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint";

/// Counts from the beginning of its transaction.
const NAIVE_NOW: &str = "\
UPDATE naive_sessions SET expires_at = now() + ttl WHERE id = 1 AND expires_at > now() \
RETURNING floor(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint";

/// The shortest lifetime there is.
fn short() -> Ttl {
    millis(1_000)
}

/// How much of a session's lease is left, in milliseconds of the database.
async fn left(raw: &Raw, id: &str) -> i64 {
    let sql = format!(
        "SELECT floor(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint \
         FROM dlock_sessions WHERE id = {id}"
    );
    raw.number(&sql).await
}

/// Until a lease has ended by the database's clock, which nobody can see from outside while the row
/// is locked.
async fn has_ended(raw: &Raw, table: &str, id: &str) {
    let sql = format!(
        "SELECT (expires_at <= clock_timestamp())::int::bigint FROM {table} WHERE id = {id}"
    );
    raw.becomes(&sql, 1).await;
}

/// Somebody who only locked the row lets it go after the lease's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_24_a_renewal_that_waited_beyond_the_lease_is_no_success() {
    for naive in [NAIVE, NAIVE_NOW] {
        let place = Place::new().await;
        let (other, renews) = (place.raw().await, place.raw().await);
        other
            .run(
                "CREATE TABLE naive_sessions (id int PRIMARY KEY, ttl interval, \
                 expires_at timestamptz); \
                 INSERT INTO naive_sessions VALUES (1, '1 second', clock_timestamp() + '3 seconds')",
            )
            .await;
        other.run("BEGIN; SELECT FROM naive_sessions WHERE id = 1 FOR UPDATE").await;
        let renewal = tokio::spawn(async move { renews.number(naive).await });
        place.waiting(1).await;
        has_ended(&place.eye, "naive_sessions", "1").await;
        // As long again, so that what was computed when the waiting began has ended too.
        place.eye.run("SELECT pg_sleep(1.1)").await;
        other.run("COMMIT").await;
        let left = renewal.await.unwrap();
        assert!(left <= 0, "a success with {left} ms left: {naive}");
    }

    // Ours, in the same place: through the session, and through the grant (C40).
    let mut place = Place::new().await;
    let a = place.caller().await;
    let other = place.raw().await;
    let session = a.open("worker", short()).await;
    let own = a.take(&key("own"), &private_for("worker", short())).await;
    let ids = [bytes(session.id), bytes(own.session)];
    other.run("BEGIN; SELECT FROM dlock_sessions FOR UPDATE").await;
    let (keeps, extends, id, handle) = (a.clone(), a.clone(), session.id, own.clone());
    let kept = tokio::spawn(async move { keeps.keep(&id, &[]).await });
    let extended = tokio::spawn(async move { extends.extend(&handle).await });
    place.waiting(2).await;
    for id in &ids {
        has_ended(&place.eye, "dlock_sessions", id).await;
    }
    other.run("COMMIT").await;
    assert!(kept.await.unwrap().is_none(), "it is gone");
    assert!(extended.await.unwrap().is_none(), "it is lost");
}

/// The same where the row is let go in time: then the whole lifetime is ahead, not what is left of
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_24_the_lease_is_counted_from_after_the_wait() {
    let place = Place::new().await;
    let (other, renews) = (place.raw().await, place.raw().await);
    other
        .run(
            "CREATE TABLE naive_sessions (id int PRIMARY KEY, ttl interval, expires_at timestamptz); \
             INSERT INTO naive_sessions VALUES (1, '1 minute', clock_timestamp() + '1 minute')",
        )
        .await;
    other.run("BEGIN; SELECT FROM naive_sessions WHERE id = 1 FOR UPDATE").await;
    let renewal = tokio::spawn(async move { renews.number(NAIVE).await });
    place.waiting(1).await;
    place.eye.run("SELECT pg_sleep(0.5)").await;
    other.run("COMMIT").await;
    let left_of_it = renewal.await.unwrap();
    assert!(left_of_it <= 59_500, "half a second of the minute was waited away: {left_of_it}");

    let mut place = Place::new().await;
    let a = place.caller().await;
    let (other, minute) = (place.raw().await, millis(60_000));
    let session = a.open("worker", minute).await;
    let own = a.take(&key("own"), &private_for("worker", minute)).await;
    other.run("BEGIN; SELECT FROM dlock_sessions FOR UPDATE").await;
    let (keeps, extends, id, handle) = (a.clone(), a.clone(), session.id, own.clone());
    let kept = tokio::spawn(async move { keeps.keep(&id, &[]).await });
    let extended = tokio::spawn(async move { extends.extend(&handle).await });
    place.waiting(2).await;
    place.eye.run("SELECT pg_sleep(0.5)").await;
    // Read in one transaction's time: what the lease would be if it were counted from now.
    other.run("CREATE TABLE let_go AS SELECT clock_timestamp() AS at; COMMIT").await;
    let kept = kept.await.unwrap().unwrap();
    let extended = extended.await.unwrap().unwrap();
    let counted_from_before = "SELECT count(*) FROM dlock_sessions, let_go \
         WHERE expires_at < let_go.at + ttl_ms * interval '1 millisecond'";
    assert_eq!(place.eye.number(counted_from_before).await, 0);
    // What the caller may believe is counted from before the call, so it is the smaller (INV-03).
    for (deadline, id) in
        [(kept.session.client_deadline, session.id), (extended.client_deadline, own.session)]
    {
        let (now, left) = (a.now(), left(&place.eye, &bytes(id)).await);
        let believed = deadline.since(now).as_millis();
        assert!(believed < u128::try_from(left).unwrap(), "{believed} of {left}");
    }
}

/// C40: the lock's row is held by somebody for longer than the lease while its holder renews.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c40_a_renewal_that_waited_for_the_locks_row_is_lost_or_in_time() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let other = place.raw().await;
    let session = a.open("worker", millis(3_000)).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    other.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    // Keeping the session alive needs no lock's row, however many it holds.
    assert_eq!(a.keep(&session.id, &[&handle]).await.unwrap().lost, []);
    let (extends, of_it) = (a.clone(), handle.clone());
    let extended = tokio::spawn(async move { extends.extend(&of_it).await });
    place.waiting(1).await;
    has_ended(&place.eye, "dlock_sessions", &bytes(session.id)).await;
    other.run("COMMIT").await;
    assert!(extended.await.unwrap().is_none(), "never a success that has ended already");
    assert!(a.keep(&session.id, &[&handle]).await.is_none());
    let next = a.take(&key("k"), &private_for("next", millis(60_000))).await;
    assert!(next.token > handle.token);
}

/// A keep-alive came in time and is being committed while the old lease runs out: whoever looks then
/// sees, naively, nobody. Here he waits for it (INV-03).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c40_whoever_looks_while_a_keep_alive_is_committed_sees_the_holder() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private_for("worker", millis(1_000))).await;
    let ended = a.take(&key("l"), &private_for("worker", millis(1_000))).await;
    let keeper = place.raw().await;
    keeper
        .run(&format!(
            "BEGIN; UPDATE dlock_sessions SET expires_at = clock_timestamp() + '1 hour' WHERE id = {}",
            bytes(handle.session)
        ))
        .await;
    let past = "SELECT count(*) FROM dlock_sessions WHERE expires_at <= clock_timestamp()";
    place.eye.becomes(past, 2).await;
    let naive = "SELECT count(*) FROM dlock_locks l JOIN dlock_sessions s ON s.id = l.session \
                 AND s.expires_at > clock_timestamp()";
    assert_eq!(place.eye.number(naive).await, 0, "though it is held");

    let (reads, lists) = (a.clone(), a.clone());
    let read = tokio::spawn(async move { reads.read(&key("k")).await });
    place.waiting(1).await;
    let listed = tokio::spawn(async move {
        let request =
            ListRequest { namespace: ns("default"), prefix: "".into(), after: None, limit: 10 };
        lists.backend.directory.clone().unwrap().list(request, lists.by()).await.unwrap()
    });
    place.waiting(2).await;
    keeper.run("COMMIT").await;
    assert_eq!(read.await.unwrap().unwrap().token, handle.token);
    let listed: Vec<_> = listed.await.unwrap().locks.into_iter().map(|lock| lock.token).collect();
    assert_eq!(listed, [handle.token], "and what has ended is not listed: {}", ended.token);
}
