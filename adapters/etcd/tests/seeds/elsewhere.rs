//! What a server would have to remember if a renew wrote: an ambiguous renew, another server, a
//! restarted one. Nothing is remembered, and all three are ordinary.

use std::time::Duration;

use dlock_conformance::kit::{key, millis, private_for};
use dlock_faults::Direction;

use crate::{Place, proxy};

/// The renew's reply is lost. A store whose renew writes has another revision now and does not know
/// it: its next renew would find the lock lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ambiguous_renew_then_a_renew() {
    let mut place = Place::new().await;
    let proxy = proxy();
    let a = place.caller_through(&proxy).await;
    let handle = a.take(&key("k"), &private_for("worker", millis(60_000))).await;
    proxy.blackhole(Direction::ToClient);
    let by = a.by();
    let lost = a.backend.locks.extend(&handle.key, handle.token, by).await.unwrap_err();
    assert!(lost.is_transient(), "INV-07: {lost}");
    proxy.pass();
    proxy.reset_all();
    let renewed = loop {
        match a.backend.locks.extend(&handle.key, handle.token, a.by()).await {
            Ok(renewed) => break renewed,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(renewed.expect("still held").token, handle.token);
    assert!(a.release(&handle).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renew_and_release_through_another_server() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let handle = a.take(&key("k"), &private_for("worker", millis(60_000))).await;
    for caller in [&b, &a, &b] {
        assert_eq!(caller.extend(&handle).await.expect("held").token, handle.token);
    }
    assert!(b.release(&handle).await);
    assert!(!a.release(&handle).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renew_and_release_after_the_servers_restart() {
    let mut place = Place::new().await;
    let before = place.caller().await;
    let handle = before.take(&key("k"), &private_for("worker", millis(60_000))).await;
    assert!(before.extend(&handle).await.is_some());
    drop(before);
    let after = place.caller().await;
    assert_eq!(after.extend(&handle).await.expect("held").token, handle.token);
    let kept = after.keep(&handle.session, &[&handle]).await.expect("open");
    assert_eq!(kept.lost, []);
    assert!(after.release(&handle).await);
}
