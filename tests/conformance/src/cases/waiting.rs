//! Waiting for a release (INV-08, INV-10). Where the store does not tell of releases, its backend
//! says so and callers poll: then polling must find the lock free.

use core::time::Duration;
use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use dlock_domain::{Deadline, LockKey, TokenFloor};
use dlock_ports::{Observed, ReleaseWaiter, WaitEnd};
use tokio::task::JoinHandle;

use crate::{
    Harness,
    kit::{
        Caller, a, attempt, b, drive, key, ns, of, outlive, private, private_for, settle, until,
    },
    notes::lacks,
};

/// The waiter, or the assertion that the store is expected to have none and has none.
fn waiter<H: Harness>(h: &H, caller: &Caller) -> Option<Arc<dyn ReleaseWaiter>> {
    let waiter = caller.backend.waiter.clone();
    assert_eq!(waiter.is_some(), h.expected().waiter, "the expected capability");
    if waiter.is_none() {
        lacks("waiter");
    }
    waiter
}

/// Waits in a task of its own, until far in the future.
fn wait(
    caller: &Caller,
    waiter: &Arc<dyn ReleaseWaiter>,
    key: &LockKey,
    since: Observed,
) -> JoinHandle<WaitEnd> {
    let (waiter, key, by) = (Arc::clone(waiter), key.clone(), far(caller));
    tokio::spawn(async move { waiter.await_release(&key, &since, by).await })
}

fn far(caller: &Caller) -> Deadline {
    Deadline::at(caller.now().after(Duration::from_secs(3_600)))
}

/// How long a waiter may take to hear of what happened through another process: well above any
/// poll interval.
const SLACK: Duration = Duration::from_secs(10);

async fn assert_wakes<H: Harness>(h: &H, waiting: JoinHandle<WaitEnd>, why: &str) {
    let end = drive(h, SLACK, waiting).await.unwrap_or_else(|| panic!("{why}: slept on"));
    assert_eq!(end.expect("the wait ends"), WaitEnd::Released, "{why}");
}

/// INV-08, the gap: the release lies between the failed attempt and the wait.
pub async fn inv08_a_release_before_the_wait_counts<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for releaser in [&a, &b] {
        let handle = a.take(&key("k"), &private("holder")).await;
        let since = a.meet(&key("k"), &private("waiter")).await;
        assert!(releaser.release(&handle).await);
        if let Some(waiter) = waiter(h, &a) {
            let waiting = wait(&a, &waiter, &key("k"), since);
            assert_wakes(h, waiting, "released before the wait").await;
        }
        let handle = a.take(&key("k"), &private("waiter")).await;
        assert!(a.release(&handle).await);
    }
}

/// INV-08, the gap, when the lock has gone to somebody else already: what was met has ended.
pub async fn inv08_a_handoff_before_the_wait_counts<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    assert!(b.release(&handle).await);
    let successor = b.take(&key("k"), &private("successor")).await;
    if let Some(waiter) = waiter(h, &a) {
        let waiting = wait(&a, &waiter, &key("k"), since);
        assert_wakes(h, waiting, "handed over before the wait").await;
    }
    a.meet(&key("k"), &private("waiter")).await;
    assert!(a.release(&successor).await);
}

/// Every end of a grant by somebody's will wakes: released, revoked, closed, forgotten, its floor
/// raised; through the waiter's own store handle and through the other's.
pub async fn inv08_every_end_of_a_grant_wakes<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for ender in [&a, &b] {
        for how in ["release", "revoke", "close", "forget", "raise"] {
            let named = attempt();
            let holder = private("holder");
            let handle = b.take_as(&key("k"), &holder, named).await;
            let since = a.meet(&key("k"), &private("waiter")).await;
            let waiting = waiter(h, &a).map(|waiter| {
                let waiting = wait(&a, &waiter, &key("k"), since);
                (waiter, waiting)
            });
            if let Some((waiter, _)) = &waiting {
                until("the wait begins", || waiter.waiters(&key("k")) == 1).await;
            }
            match how {
                "release" => assert!(ender.release(&handle).await),
                "revoke" => drop(ender.revoke(&key("k"), None).await),
                "close" => assert!(ender.close(&handle.session).await),
                "forget" => assert!(ender.forget(&key("k"), &holder, named).await),
                _ => match &ender.backend.floors {
                    Some(floors) => {
                        let namespace = ns("default");
                        let raise = floors.raise(&namespace, TokenFloor::NONE, ender.by());
                        assert_eq!(raise.await.expect("raised").grants_ended, 1);
                    }
                    None => assert!(ender.release(&handle).await),
                },
            }
            if let Some((waiter, waiting)) = waiting {
                assert_wakes(h, waiting, how).await;
                assert_eq!(waiter.waiters(&key("k")), 0);
            }
            let next = a.take(&key("k"), &private("waiter")).await;
            assert!(a.release(&next).await);
        }
    }
}

/// An ended lease wakes by itself: nobody has to come by.
pub async fn inv08_expiry_wakes<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for holder in [&a, &b] {
        let handle = holder.take(&key("k"), &private_for("holder", h.short_ttl())).await;
        let since = a.meet(&key("k"), &private("waiter")).await;
        match waiter(h, &a) {
            Some(waiter) => {
                let waiting = wait(&a, &waiter, &key("k"), since);
                until("the wait begins", || waiter.waiters(&key("k")) == 1).await;
                outlive(h, handle.ttl).await;
                assert_wakes(h, waiting, "expired").await;
            }
            None => outlive(h, handle.ttl).await,
        }
        let next = a.take(&key("k"), &private("waiter")).await;
        assert!(a.release(&next).await);
    }
}

/// A lease that ended before the wait began.
pub async fn inv08_expiry_before_the_wait_counts<H: Harness>(h: &H) {
    let a = a(h);
    let handle = a.take(&key("k"), &private_for("holder", h.short_ttl())).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    outlive(h, handle.ttl).await;
    if let Some(waiter) = waiter(h, &a) {
        assert_wakes(h, wait(&a, &waiter, &key("k"), since), "expired before the wait").await;
    }
    a.take(&key("k"), &private("waiter")).await;
}

/// A renew wakes nobody, whichever way the lease is extended and however often; nor does the
/// passing of what would have been its end.
pub async fn a_renew_wakes_nobody<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = b.open("holder", h.short_ttl()).await;
    let handle = b.take(&key("k"), &of(&session)).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    let waiting = waiter(h, &a).map(|waiter| wait(&a, &waiter, &key("k"), since));
    for caller in [&a, &b, &a, &b] {
        h.pass(session.ttl.as_duration() / 3).await;
        assert!(caller.extend(&handle).await.is_some());
        h.pass(session.ttl.as_duration() / 3).await;
        assert_eq!(caller.keep(&session.id, &[&handle]).await.expect("live").lost, []);
        settle().await;
        assert!(waiting.as_ref().is_none_or(|waiting| !waiting.is_finished()), "a renew woke");
    }
    assert!(b.release(&handle).await);
    if let Some(waiting) = waiting {
        assert_wakes(h, waiting, "released at last").await;
    }
}

/// What happens to other locks wakes nobody here.
pub async fn other_locks_wake_nobody<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    let waiting = waiter(h, &a).map(|waiter| wait(&a, &waiter, &key("k"), since));
    for name in ["k/", "K", "k2", "j"] {
        let other = b.take(&key(name), &private("other")).await;
        assert!(a.release(&other).await);
    }
    let namesake = b.take(&crate::kit::key_in("other", "k"), &private("other")).await;
    assert!(b.release(&namesake).await);
    settle().await;
    assert!(waiting.as_ref().is_none_or(|waiting| !waiting.is_finished()), "a stranger woke");
    assert!(a.release(&handle).await);
    if let Some(waiting) = waiting {
        assert_wakes(h, waiting, "released at last").await;
    }
}

/// The deadline ends a wait, one in the past at once; the holder is not disturbed.
pub async fn the_deadline_ends_a_wait<H: Harness>(h: &H) {
    let a = a(h);
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    if let Some(waiter) = waiter(h, &a) {
        for past in [Duration::ZERO, Duration::from_millis(1)] {
            let by = Deadline::at(a.now().before(past));
            assert_eq!(waiter.await_release(&key("k"), &since, by).await, WaitEnd::Deadline);
        }
        let by = Deadline::at(a.now().after(Duration::from_millis(300)));
        let end = drive(h, SLACK, waiter.await_release(&key("k"), &since, by)).await;
        assert_eq!(end.expect("the wait ends"), WaitEnd::Deadline);
        assert!(by.is_past(a.now()), "not before its time");
        assert_eq!(waiter.waiters(&key("k")), 0);
    }
    assert!(a.extend(&handle).await.is_some());
}

/// Those who wait are counted here, per key; dropped waits leave nothing (INV-10).
pub async fn inv10_dropped_waits_leave_nothing<H: Harness>(h: &H) {
    let a = a(h);
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    if let Some(waiter) = waiter(h, &a) {
        let (k, by) = (key("k"), far(&a));
        assert_eq!(waiter.waiters(&k), 0);
        let tasks: Vec<_> = (0..3).map(|_| wait(&a, &waiter, &k, since.clone())).collect();
        until("three wait", || waiter.waiters(&k) == 3).await;
        assert_eq!(waiter.waiters(&key("other")), 0);
        for task in tasks {
            task.abort();
            assert!(task.await.expect_err("aborted").is_cancelled());
        }
        assert_eq!(waiter.waiters(&k), 0);
        for _ in 0..1_000 {
            let mut waiting = pin!(waiter.await_release(&k, &since, by));
            poll_fn(|context| {
                assert!(waiting.as_mut().poll(context).is_pending(), "the lock is held");
                Poll::Ready(())
            })
            .await;
        }
        assert_eq!(waiter.waiters(&k), 0);
        let waiting = wait(&a, &waiter, &k, since);
        until("one waits", || waiter.waiters(&k) == 1).await;
        assert!(a.release(&handle).await);
        assert_wakes(h, waiting, "after all those").await;
    }
}

/// Everyone who waits is woken, not only one.
pub async fn a_release_wakes_all_who_wait<H: Harness>(h: &H) {
    let a = a(h);
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    if let Some(waiter) = waiter(h, &a) {
        let tasks: Vec<_> = (0..200).map(|_| wait(&a, &waiter, &key("k"), since.clone())).collect();
        until("all wait", || waiter.waiters(&key("k")) == 200).await;
        assert!(a.release(&handle).await);
        for task in tasks {
            assert_wakes(h, task, "one of many").await;
        }
        assert_eq!(waiter.waiters(&key("k")), 0);
    }
}

/// A stranger's place in another history tells this store nothing: it says so.
pub async fn a_strangers_place_is_answered_with_fallback<H: Harness>(h: &H) {
    let a = a(h);
    a.take(&key("k"), &private("holder")).await;
    if let Some(waiter) = waiter(h, &a) {
        let stranger = Observed::new("a place of no store's");
        let end = drive(h, SLACK, waiter.await_release(&key("k"), &stranger, far(&a))).await;
        assert_eq!(end, Some(WaitEnd::Fallback));
        assert_eq!(waiter.waiters(&key("k")), 0);
    }
}

/// INV-08 under fire: a release in every conceivable interleaving with attempt and wait.
pub async fn inv08_no_interleaving_loses_a_release<H: Harness>(h: &H) {
    let a = a(h);
    for round in 0..100_u32 {
        let handle = a.take(&key("k"), &private("holder")).await;
        let since = a.meet(&key("k"), &private("waiter")).await;
        let releasing = {
            let a = a.clone();
            tokio::spawn(async move {
                for _ in 0..round % 5 {
                    tokio::task::yield_now().await;
                }
                assert!(a.release(&handle).await);
            })
        };
        if let Some(waiter) = waiter(h, &a) {
            let waiting = wait(&a, &waiter, &key("k"), since);
            assert_wakes(h, waiting, "released meanwhile").await;
        }
        releasing.await.expect("released");
    }
}
