//! Trap 30: a commit whose answer never comes, and calls that are dropped in the middle.

use std::{future::poll_fn, net::SocketAddr, pin::pin, task::Poll, time::Duration};

use dlock_conformance::{
    kit::{attempt, granted, key, private},
    stores::{Direct, postgres_url},
};
use dlock_domain::{Applied, ErrorKind};
use dlock_faults::Proxy;
use dlock_ports::{Attempt, InsertRequest, Intent};

use crate::kit::{Place, Raw, host_and_port, soon};

fn proxy() -> Proxy {
    let (host, port) = host_and_port(&postgres_url::<Direct>());
    Proxy::start(SocketAddr::new(host.parse().unwrap(), port)).unwrap()
}

/// The same address behind a proxy.
fn through(proxy: &Proxy) -> String {
    let url = postgres_url::<Direct>();
    let (host, port) = host_and_port(&url);
    let behind = url.replace(&format!("{host}:{port}"), &proxy.addr().to_string());
    assert_ne!(behind, url);
    behind
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_30_a_commit_that_nobody_answered_is_unknown() {
    let mut place = Place::new().await;
    let proxy = proxy();
    // The naive one takes a time-out for a refusal and asks under another name.
    let naive = Raw::connect(&through(&proxy), &place.schema).await;
    naive.run("CREATE TABLE naive_locks (name text PRIMARY KEY, attempt int)").await;
    proxy.swallow_next_reply();
    let take = "INSERT INTO naive_locks VALUES ('k', 1) ON CONFLICT DO NOTHING";
    let first = tokio::time::timeout(Duration::from_millis(300), naive.client.batch_execute(take));
    assert!(first.await.is_err(), "nobody answers");
    let again = "INSERT INTO naive_locks VALUES ('k', 2) ON CONFLICT DO NOTHING";
    let taken = "SELECT count(*) FROM naive_locks";
    place.eye.becomes(taken, 1).await;
    let again = place.eye.client.execute_typed(again, &[]).await.unwrap();
    assert_eq!(again, 0, "it waits for itself");

    let a = place.caller_with(place.config_at(&through(&proxy))).await;
    let warm = a.take(&key("warm"), &private("worker")).await;
    for intent in [Intent::Acquire, Intent::Recover] {
        let (one, key) = (attempt(), key(&format!("{intent:?}")));
        let request = InsertRequest {
            key: key.clone(),
            holder: private("worker"),
            attempt: one,
            intent: Intent::Acquire,
        };
        proxy.swallow_next_reply();
        let swallowed = proxy.counts().replies_swallowed;
        let (lost, _) = tokio::join!(
            a.backend.locks.try_insert(request, soon(&a, 500)),
            proxy.counted(|counts| counts.replies_swallowed > swallowed),
        );
        let unknown = lost.unwrap_err();
        assert_eq!((unknown.kind(), unknown.applied()), (ErrorKind::Contention, Applied::Unknown));
        let made = format!("SELECT fence FROM dlock_locks WHERE name = '{intent:?}'");
        let made = place.eye.number(&made).await;
        let found = granted(a.shot(&key, &private("worker"), one, intent).await);
        assert_eq!(i64::try_from(found.token.get()).unwrap(), made, "its own, found again");
        assert!(found.token > warm.token);
        assert!(a.release(&found).await);
    }
    // The same of a release: unknown, and then it is found done.
    proxy.swallow_next_reply();
    let released = a.backend.locks.delete_if_owner(&key("warm"), warm.token, soon(&a, 500)).await;
    let unknown = released.unwrap_err();
    assert_eq!((unknown.kind(), unknown.applied()), (ErrorKind::Contention, Applied::Unknown));
    assert!(!a.release(&warm).await, "it was done");
}

/// A connection whose transaction was left in the middle is nobody's to use.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn trap_30_dropped_calls_leave_no_transaction_open() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let before = a.take(&key("k"), &private("before")).await;
    assert!(a.release(&before).await);
    let other = place.raw().await;
    let lock = "BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE";

    // The naive one awaits each statement in the caller's own future.
    let naive = place.raw().await;
    other.run(lock).await;
    {
        let mut call = pin!(async {
            naive.run("BEGIN").await;
            naive.run("UPDATE dlock_locks SET attempt = NULL WHERE name = 'k'").await;
            naive.run("COMMIT").await;
        });
        tokio::select! {
            () = &mut call => panic!("the row is locked"),
            () = place.waiting(1) => {}
        }
    }
    other.run("COMMIT").await;
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND state = 'idle in transaction'",
        naive.pid
    );
    place.eye.becomes(&open, 1).await;
    let skipped = "SELECT 1::bigint FROM dlock_locks WHERE name = 'k' FOR UPDATE SKIP LOCKED";
    assert!(place.eye.client.query_typed(skipped, &[]).await.unwrap().is_empty(), "and locks on");
    naive.run("ROLLBACK").await;

    // Ours, dropped after so many polls, as an ever different number has it.
    let nobody_in_the_middle = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' \
         AND state LIKE 'idle in transaction%' AND pid <> {}",
        place.schema, other.pid
    );
    for round in 0..10 {
        other.run(lock).await;
        for n in 0..50_u64 {
            let request = InsertRequest {
                key: key("k"),
                holder: private("dropped"),
                attempt: attempt(),
                intent: Intent::Acquire,
            };
            let locks = a.backend.locks.clone();
            let mut left = (round * 50 + n).wrapping_mul(0x9E37_79B9) % 7;
            let mut call = pin!(locks.try_insert(request, soon(&a, 60)));
            // Dropping it at any of its awaits is what this is about.
            poll_fn(|context| {
                let polled = call.as_mut().poll(context);
                if polled.is_ready() || left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            if n % 5 == 0 {
                tokio::time::sleep(Duration::from_millis(n % 4)).await;
            }
        }
        other.run("COMMIT").await;
        place.eye.becomes(&nobody_in_the_middle, 0).await;
        // What one of them may have been granted, or is yet to be, is nobody's: an operator would see
        // it. No more of them are on their way than there are connections.
        let mut next = None;
        for _ in 0..100 {
            a.revoke(&key("k"), None).await;
            if let Attempt::Granted(handle) =
                a.insert(&key("k"), &private("next"), attempt()).await.unwrap()
            {
                next = Some(handle);
                break;
            }
        }
        let next = next.unwrap_or_else(|| panic!("never free in round {round}"));
        assert!(a.release(&next).await, "round {round}");
    }
}

/// A connection that is ended by an administrator says so in place of an answer. It may have come in
/// place of one that was on its way, so it is no refusal (INV-07).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_30_a_connection_that_is_ended_is_no_refusal() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&handle).await);
    let other = place.raw().await;
    other.run("BEGIN; SELECT FROM dlock_locks WHERE name = 'k' FOR UPDATE").await;
    let asks = a.clone();
    let waits = tokio::spawn(async move {
        asks.insert(&key("k"), &private("worker"), attempt()).await.map(drop)
    });
    place.waiting(1).await;
    let end = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE application_name = '{}' AND wait_event_type = 'Lock'",
        place.schema
    );
    assert_eq!(place.eye.number(&end).await, 1);
    let ended = waits.await.unwrap().unwrap_err();
    assert_eq!((ended.kind(), ended.applied()), (ErrorKind::Contention, Applied::Unknown));
    other.run("COMMIT").await;
    a.take(&key("k"), &private("next")).await;
}

/// A database that does not answer one call has no use for those that lie idle either: they are let go,
/// so that the next calls do not find that out one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn trap_30_a_call_without_an_answer_lets_idle_connections_go() {
    let mut place = Place::new().await;
    let proxy = proxy();
    let a = place.caller_with(place.config_at(&through(&proxy))).await;
    proxy.delay(dlock_faults::Direction::ToClient, Duration::from_millis(100));
    let names = ["a", "b", "c"].map(key);
    let [x, y, z] = names.each_ref().map(|name| a.read(name));
    tokio::join!(x, y, z);
    proxy.pass();
    let open = |counts: &dlock_faults::Counts| counts.connections - counts.ended;
    assert!(open(&proxy.counts()) >= 3, "they lie idle");
    proxy.swallow_next_reply();
    let consistency = dlock_ports::Consistency::Linearizable;
    let lost = a.backend.locks.read(&names[0], consistency, soon(&a, 500)).await.unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::Contention);
    let all_but_one = proxy.counted(|counts| open(counts) <= 1);
    tokio::time::timeout(Duration::from_secs(20), all_but_one).await.unwrap();
    assert!(a.read(&names[0]).await.is_none());
}
