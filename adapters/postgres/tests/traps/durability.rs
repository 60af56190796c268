//! Traps 27 and 28 on a server of the test's own, whose log can be looked at: what is written when,
//! and what is lost when it is killed.

use dlock_conformance::kit::{key, private};
use dlock_servers::PostgresServer;

use crate::kit::{Place, Raw, version};

/// A server that writes its log to the disk only when somebody asks for it, or every ten seconds,
/// and does nothing by itself.
async fn lazy() -> PostgresServer {
    PostgresServer::start_with(
        version().await,
        &[
            ("synchronous_commit", "off"),
            ("wal_writer_delay", "10s"),
            ("wal_writer_flush_after", "1GB"),
            // Or it would note every now and then who is running.
            ("wal_level", "minimal"),
            ("max_wal_senders", "0"),
            ("autovacuum", "off"),
            ("bgwriter_lru_maxpages", "0"),
            ("checkpoint_timeout", "1h"),
        ],
    )
}

/// How many bytes of the log are not on the disk.
const BEHIND: &str = "SELECT (pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn())::bigint";

/// Where the log's end is.
const END: &str = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";

/// The next transaction's number.
const NEXT: &str = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_27_what_was_answered_is_on_the_disk() {
    let mut server = lazy().await;
    let mut place = Place::at(server.url("postgres")).await;
    let naive = Raw::connect(&server.url("postgres"), &place.schema).await;
    naive.run("CREATE TABLE naive_locks (name text PRIMARY KEY, token bigint)").await;
    naive.run("CREATE SEQUENCE naive_tokens").await;
    naive.run("INSERT INTO naive_locks VALUES ('k', nextval('naive_tokens'))").await;
    place.eye.run("CHECKPOINT").await;
    let grant = "UPDATE naive_locks SET token = nextval('naive_tokens') RETURNING token";
    let last = naive.number(grant).await;
    assert!(place.eye.number(BEHIND).await > 0, "acknowledged, and on no disk");

    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    assert_eq!(place.eye.number(BEHIND).await, 0);
    assert!(a.release(&handle).await);
    assert_eq!(place.eye.number(BEHIND).await, 0);
    let handle = a.take(&key("k"), &private("worker")).await;
    drop((a, naive));
    // What the naive one acknowledges goes with the server, unless the ten seconds end just then.
    let mut lost = false;
    for _ in 0..3 {
        let naive = place.raw().await;
        let acknowledged = naive.number(grant).await;
        assert!(acknowledged > last);
        server.kill();
        server.restart();
        place.eye = place.raw().await;
        let kept = place.eye.number("SELECT token FROM naive_locks").await;
        lost = lost || kept < acknowledged;
    }
    assert!(lost, "a token that was acknowledged is lost");
    let a = place.caller().await;
    assert_eq!(a.read(&key("k")).await.unwrap().token, handle.token, "ours is not");
    assert!(a.extend(&handle).await.is_some());
    assert!(a.release(&handle).await);
    assert!(a.take(&key("k"), &private("next")).await.token > handle.token);
}

/// A hundred that lose: what they cost the log, and how many transaction numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_28_losing_costs_the_log_nothing() {
    let server = lazy().await;
    let mut place = Place::at(server.url("postgres")).await;
    let naive = Raw::connect(&server.url("postgres"), &place.schema).await;
    naive.run("CREATE TABLE naive_locks (name text PRIMARY KEY, session int)").await;
    naive.run("INSERT INTO naive_locks VALUES ('k', 1)").await;
    let upsert = "INSERT INTO naive_locks VALUES ('k', 2) ON CONFLICT (name) \
         DO UPDATE SET session = EXCLUDED.session WHERE naive_locks.session IS NULL";
    let (end, next) = (place.eye.number(END).await, place.eye.number(NEXT).await);
    for _ in 0..100 {
        assert_eq!(naive.client.execute_typed(upsert, &[]).await.unwrap(), 0);
    }
    let bytes = place.eye.number(END).await - end;
    assert!(bytes >= 100 * 50, "{bytes} bytes for nothing");
    assert_eq!(place.eye.number(NEXT).await - next, 100);

    let a = place.caller().await;
    a.take(&key("k"), &private("holder")).await;
    a.meet(&key("k"), &private("other")).await;
    // Reading a page for the first time after a checkpoint may tidy it.
    a.meet(&key("k"), &private("other")).await;
    let (end, next) = (place.eye.number(END).await, place.eye.number(NEXT).await);
    for _ in 0..100 {
        a.meet(&key("k"), &private("other")).await;
    }
    assert_eq!(place.eye.number(NEXT).await - next, 0);
    // The server itself notes now and then who is running.
    let bytes = place.eye.number(END).await - end;
    assert!(bytes < 1_000, "{bytes}");
}
