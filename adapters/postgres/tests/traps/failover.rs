//! Trap 29 and C44 where history really goes another way: a standby that is promoted, a backup that
//! is brought back, a dump that is restored.

use dlock_conformance::kit::{Caller, attempt, key, long, ns, of, private};
use dlock_domain::{ErrorKind, Invariant, LockError, TokenFloor};
use dlock_servers::PostgresServer;

use crate::kit::{Place, caller, version};

fn assert_names_the_way_out(error: &LockError) {
    assert_eq!(error.kind(), ErrorKind::InvariantViolated(Invariant::TokensRise), "{error:?}");
    assert!(error.detail().contains("dlock floor raise"), "{}", error.detail());
}

async fn raise(a: &Caller, at_least: u64) -> TokenFloor {
    let floors = a.backend.floors.clone().unwrap();
    let floor = TokenFloor::new(at_least).unwrap();
    floors.raise(&ns("default"), floor, a.by()).await.unwrap().floor
}

/// From now on the data are those of a standby, as soon as somebody starts a server on them.
fn make_a_standby_of(server: &PostgresServer) {
    server.execute(
        "postgres",
        "DO $$ BEGIN EXECUTE format('COPY (SELECT '''' WHERE false) TO %L', \
         current_setting('data_directory') || '/standby.signal'); END $$",
    );
}

fn promote(server: &PostgresServer) {
    assert_eq!(server.query("postgres", "SELECT pg_promote()"), [["t"]]);
}

/// A primary fails and its standby takes over; then a backup from before is brought back, with a
/// sequence that has gone back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn trap_29_after_a_promotion_nothing_is_granted_until_the_floor_is_raised() {
    let mut server = PostgresServer::start(version().await);
    let mut place = Place::at(server.url("postgres")).await;
    let store = place.store().await;
    let a = caller(&store);
    let session = a.open("worker", long()).await;
    let held = a.take(&key("held"), &of(&session)).await;
    make_a_standby_of(&server);
    server.stop();
    let backup = server.back_up();
    server.restart();

    // Who speaks to a standby is told so.
    let refused = crate::kit::in_the_end(|| async {
        match a.insert(&key("k"), &private("worker"), attempt()).await {
            // Connections that ended with the old server.
            Err(error) if error.kind() == ErrorKind::Contention => Err(error),
            other => Ok(other),
        }
    })
    .await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotLeader);

    promote(&server);
    let b = place.caller().await;
    for caller in [&a, &b] {
        let refused = caller.insert(&key("k"), &private("worker"), attempt()).await.unwrap_err();
        assert_names_the_way_out(&refused);
        assert_eq!(caller.extend(&held).await.unwrap().token, held.token, "what is held is kept");
    }
    let floor = raise(&b, held.token.get() + 100).await;
    let mut highest = held.token;
    for caller in [&a, &b] {
        let next = caller.take(&key("k"), &private("worker")).await;
        assert!(floor.admits(next.token) && next.token > highest);
        highest = next.token;
        assert!(caller.release(&next).await);
    }

    // The backup knows nothing of that.
    server.kill();
    server.put_back(&backup);
    server.restart();
    promote(&server);
    let a = place.caller().await;
    place.eye = place.raw().await;
    let naive = place.eye.number("SELECT nextval('dlock_fencing_token_seq')").await;
    assert!(u64::try_from(naive).unwrap() < highest.get(), "it would be granted again");
    let refused = a.insert(&key("k"), &private("worker"), attempt()).await.unwrap_err();
    assert_names_the_way_out(&refused);
    let raised = raise(&a, highest.get()).await;
    assert_eq!(raised.get(), highest.get());
    let next = a.take(&key("k"), &private("worker")).await;
    assert!(next.token > highest);
}

/// A dump that is restored into the same cluster carries the same identity and timeline: nothing can
/// be noticed, and only raising the floor, which the runbook demands, makes it right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_after_a_restored_dump_only_the_floor_makes_tokens_rise() {
    let server = PostgresServer::start(version().await);
    let mut place = Place::at(server.url("postgres")).await;
    let a = place.caller().await;
    let before = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&before).await);
    let dump = server.dump("postgres");
    let after = a.take(&key("k"), &private("worker")).await;
    drop(a);
    server.restore("copy", &dump);

    let a = place.caller_with(place.config_at(&server.url("copy"))).await;
    let naive = a.take(&key("k"), &private("worker")).await;
    assert_eq!(naive.token, after.token, "the token of another grant");
    let floor = raise(&a, after.token.get()).await;
    assert!(!floor.admits(after.token));
    assert!(a.extend(&naive).await.is_none(), "and its grants have ended");
    let next = a.take(&key("k"), &private("worker")).await;
    assert!(next.token > after.token);
}

/// C41: the server's zone is changed under way; and its own order of texts is a language's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c41_trap_31_the_servers_zone_and_language_are_of_no_effect() {
    let server = PostgresServer::start(version().await);
    let mut place = Place::at(server.url("postgres")).await;
    let order = place.eye.texts("SELECT x FROM unnest(ARRAY['b', 'B', 'a']) x ORDER BY x").await;
    assert_eq!(order, ["a", "b", "B"], "the naive order here is a language's");
    crate::text::names_are_bytes(&mut place).await;

    let (a, b) = (place.caller().await, place.caller().await);
    let handle = a.take(&key("zone"), &private("worker")).await;
    for zone in ["Asia/Kolkata", "America/St_Johns", "Pacific/Kiritimati", "UTC"] {
        place.eye.run(&format!("ALTER SYSTEM SET TimeZone TO '{zone}'")).await;
        place.eye.run("SELECT pg_reload_conf()").await;
        let seen = format!("SELECT (current_setting('TimeZone') = '{zone}')::int::bigint");
        place.eye.becomes(&seen, 1).await;
        b.meet(&key("zone"), &private("other")).await;
        assert_eq!(a.extend(&handle).await.unwrap().token, handle.token, "{zone}");
        assert_eq!(a.reap(100).await, 0, "{zone}");
        let left = b.read(&key("zone")).await.unwrap().server_expiry.since(b.wall());
        let hour = std::time::Duration::from_secs(3_600);
        assert!(left <= hour && left > hour / 2, "{zone}: {left:?}");
    }
}
