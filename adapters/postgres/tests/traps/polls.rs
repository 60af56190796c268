//! Trap 28: what losing costs, and who waits for whose connection. (What it costs the server's log
//! is measured on a server of its own: `durability`.)

use std::time::Duration;

use dlock_conformance::{
    Harness,
    kit::{attempt, key, long, millis, owner, private, until},
    service_kit::{config, desk_with},
    stores::{Direct, Postgres},
};
use dlock_domain::ErrorKind;
use dlock_ports::{AcquireRequest, Acquired, Consistency, SessionRef};

use crate::kit::{Place, soon};

/// Asks by writing, whoever holds it.
const NAIVE: &str = "\
INSERT INTO naive_locks (name, session) VALUES ('k', 2) ON CONFLICT (name) \
DO UPDATE SET session = EXCLUDED.session WHERE naive_locks.session IS NULL";

/// Where every row lies and who touched it last: a row lock, too, would leave its mark.
fn marks(tables: &[&str]) -> String {
    let each: Vec<_> = tables
        .iter()
        .map(|table| format!("SELECT concat_ws(' ', '{table}', ctid, xmin, xmax) x FROM {table}"))
        .collect();
    format!("SELECT x FROM ({}) all_of_them ORDER BY x", each.join(" UNION ALL "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_28_whoever_loses_again_touches_nothing() {
    let mut place = Place::new().await;
    let naive = place.raw().await;
    naive.run("CREATE TABLE naive_locks (name text PRIMARY KEY, session int)").await;
    naive.run("INSERT INTO naive_locks VALUES ('k', 1)").await;
    let of_naive = marks(&["naive_locks"]);
    let before = naive.texts(&of_naive).await;
    assert_eq!(naive.client.execute_typed(NAIVE, &[]).await.unwrap(), 0, "it loses");
    assert_ne!(naive.texts(&of_naive).await, before, "and has locked the row");

    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    let handle = a.take(&key("k"), &private("holder")).await;
    // The first to lose finds it out by trying.
    a.meet(&key("k"), &private("other")).await;
    let all = marks(&["dlock_locks", "dlock_sessions", "dlock_settled", "dlock_meta"]);
    let before = place.eye.texts(&all).await;
    let drawn = "SELECT last_value FROM dlock_fencing_token_seq";
    let tokens = place.eye.number(drawn).await;
    for n in 0..100 {
        if n % 2 == 0 {
            a.meet(&key("k"), &private("other")).await;
        } else {
            a.meet(&key("k"), &dlock_conformance::kit::of(&session)).await;
        }
    }
    assert!(a.read(&key("k")).await.is_some());
    assert_eq!(place.eye.texts(&all).await, before);
    assert_eq!(place.eye.number(drawn).await, tokens);
    // And when it is free the next one has it.
    assert!(a.release(&handle).await);
    a.take(&key("k"), &private("other")).await;
}

/// All connections that acquires may use wait behind a row. A look, which shares them, shows what a
/// renewal from the same pool would meet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_28_renewing_and_releasing_have_connections_of_their_own() {
    let mut place = Place::new().await;
    let mut config = place.config();
    config.pool = 5;
    let a = place.caller_with(config).await;
    let stuck = a.take(&key("stuck"), &private("before")).await;
    assert!(a.release(&stuck).await);
    let session = a.open("worker", long()).await;
    let handle = a.take(&key("k"), &dlock_conformance::kit::of(&session)).await;
    let other = place.raw().await;
    other.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'stuck' FOR UPDATE").await;
    let mut waits = Vec::new();
    for n in 1..=3 {
        let asks = a.clone();
        waits.push(tokio::spawn(async move {
            asks.insert(&key("stuck"), &private("waiting"), attempt()).await
        }));
        place.waiting(n).await;
    }
    let look = a.backend.locks.read(&key("k"), Consistency::Linearizable, soon(&a, 100)).await;
    let naive = look.unwrap_err();
    assert_eq!(naive.kind(), ErrorKind::Contention, "no connection came free in time");

    for _ in 0..20 {
        assert!(a.extend(&handle).await.is_some());
        assert_eq!(a.keep(&session.id, &[&handle]).await.unwrap().lost, []);
    }
    assert!(a.release(&handle).await);
    assert!(!a.forget(&key("k"), &dlock_conformance::kit::of(&session), attempt()).await);
    assert!(a.close(&session.id).await);
    assert!(waits.iter().all(|one| !one.is_finished()));
    other.run("COMMIT").await;
    let mut granted = 0;
    for one in waits {
        let answer = one.await.unwrap().unwrap();
        granted += u32::from(matches!(answer, dlock_ports::Attempt::Granted(_)));
    }
    assert_eq!(granted, 1);
}

/// Thirty wait for one lock over one connection; others come and go meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_28_waiters_hold_no_connection() {
    let mut place = Place::new().await;
    let mut small = place.config();
    small.pool = 3;
    let store = place.connect(small).await;
    let h = Postgres::<Direct>::start().await;
    let desk = desk_with(&h, store.backend(), config(&h)).await;
    let service = desk.front.clone();
    let ask = |name: &str, wait: u64| AcquireRequest {
        key: key(name),
        session: SessionRef::Private { owner: owner("worker"), ttl: millis(60_000) },
        attempt: None,
        max_wait: Duration::from_secs(wait),
    };
    let Acquired::Granted(held) = service.acquire(ask("k", 0)).await.unwrap() else {
        panic!("it is free")
    };
    let mut waits = Vec::new();
    for _ in 0..30 {
        let (service, ask) = (service.clone(), ask("k", 600));
        waits.push(tokio::spawn(async move { service.acquire(ask).await }));
    }
    until("all wait", || desk.service.load().waiting == 30).await;
    for n in 0..50 {
        let Acquired::Granted(other) = service.acquire(ask(&format!("other{n}"), 0)).await.unwrap()
        else {
            panic!("it is free")
        };
        let renewed = service.renew(&other.key, other.token, &other.session).await.unwrap();
        assert_eq!(renewed.token, other.token);
        assert!(service.release(&other.key, other.token, &other.session).await.unwrap().released);
    }
    assert!(service.renew(&held.key, held.token, &held.session).await.is_ok());
    let connections = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' AND pid <> {}",
        place.schema, place.eye.pid
    );
    assert!(place.eye.number(&connections).await <= 3);
    for one in waits {
        one.abort();
    }
}
