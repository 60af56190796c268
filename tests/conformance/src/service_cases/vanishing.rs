//! Callers who go away: the operation is seen to its end, and nothing is left that nobody can
//! claim (INV-09, traps 38 and 41).

use core::time::Duration;
use std::sync::Arc;

use dlock_domain::ErrorKind;
use dlock_ports::{AcquireRequest, SessionRef};

use crate::{
    ServiceHarness,
    kit::{Caller, assert_refused, attempt, key, long, revocation, until},
    service_kit::{PATIENT, alone, desk, got, promptly, wish},
    swallow::{Fate, Method},
};

/// A caller that leaves while its shot is under way: the grant is released.
pub async fn inv09_an_unclaimed_grant_is_released<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let id = desk.open("worker", long()).await;
    desk.hand.next(Method::Insert, Fate::ReplyLate);
    desk.hand.next(Method::Insert, Fate::ReplyLate);
    let mut asking = Vec::new();
    for (name, session) in [("k1", SessionRef::Id(id)), ("k2", alone("worker"))] {
        asking.push(desk.acquiring(wish(&key(name), &session, Duration::ZERO)));
    }
    desk.hand.seen("both are granted", |tally| tally.done == 2).await;
    for asking in asking {
        asking.abort();
        assert!(asking.await.expect_err("aborted").is_cancelled());
    }
    desk.hand.deliver();
    desk.at_rest().await;
    for name in ["k1", "k2"] {
        assert_eq!(desk.inspect(&key(name)).await, None);
    }
    assert_eq!(desk.front.look_session(&id).await.expect("open").1, []);
}

/// A caller that chose its attempt's id may come back: its grant is kept for the repeat, and goes
/// with `forget`.
pub async fn a_grant_that_can_be_claimed_is_kept<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let named = attempt();
    desk.hand.next(Method::Insert, Fate::ReplyLate);
    let request = wish(&key("k"), &alone("worker"), Duration::ZERO);
    let asking = desk.acquiring(AcquireRequest { attempt: Some(named), ..request });
    desk.hand.seen("it is granted", |tally| tally.done == 1).await;
    asking.abort();
    assert!(asking.await.expect_err("aborted").is_cancelled());
    desk.hand.deliver();
    desk.at_rest().await;
    let kept = desk.inspect(&key("k")).await.expect("kept");
    let found = got(desk.acquire_as(&key("k"), &alone("worker"), named).await);
    assert_eq!(found.token, kept.token);
    let answer = desk.front.forget(&key("k"), &alone("worker"), named).await;
    assert!(answer.expect("forget answers").released);
    assert_eq!(desk.inspect(&key("k")).await, None);
}

/// A caller that leaves the line never gets the lock.
pub async fn inv09_who_left_is_never_granted<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    for named in [None, Some(attempt())] {
        let held = desk.take(&key("k"), &alone("holder")).await;
        let shots = desk.hand.tally().shots;
        let request = wish(&key("k"), &alone("worker"), PATIENT);
        let waiting = desk.acquiring(AcquireRequest { attempt: named, ..request });
        desk.hand.seen("the first shot", |tally| tally.shots > shots).await;
        until("it waits", || desk.service.load().waiting == 1).await;
        waiting.abort();
        assert!(waiting.await.expect_err("aborted").is_cancelled());
        desk.at_rest().await;
        assert!(desk.release(&held).await.released);
        assert_eq!(desk.inspect(&key("k")).await, None);
    }
}

/// Renewals, releases, closes, revokes whose callers leave: what reached the store is done, the
/// service goes on.
pub async fn operations_outlive_their_callers<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let front = Arc::clone(&desk.front);
    let store = Caller::new(h, h.backend());
    let id = desk.open("worker", long()).await;
    let session = SessionRef::Id(id);
    for (n, method) in
        [Method::Delete, Method::Close, Method::Revoke, Method::Forget].into_iter().enumerate()
    {
        let named = attempt();
        let id = if method == Method::Close { desk.open("closing", long()).await } else { id };
        let session = if method == Method::Close { SessionRef::Id(id) } else { session.clone() };
        let handle = got(desk.acquire_as(&key("k"), &session, named).await);
        desk.hand.next(method, Fate::ReplyLate);
        let front = Arc::clone(&front);
        let leaving = tokio::spawn(async move {
            match method {
                Method::Delete => drop(front.release(&handle.key, handle.token, &id).await),
                Method::Close => drop(front.close_session(&id).await),
                Method::Revoke => drop(front.revoke(&handle.key, revocation(None)).await),
                _ => drop(front.forget(&handle.key, &session, named).await),
            }
        });
        desk.hand.seen("it reached the store", |tally| tally.met as usize > n).await;
        leaving.abort();
        // It may have ended by itself once replies are let through.
        drop(leaving.await);
        until("done", || desk.hand.tally().done as usize > n).await;
        assert_eq!(store.read(&key("k")).await, None, "{method:?} was done");
    }
    desk.hand.deliver();
    desk.at_rest().await;
    let handle = desk.take(&key("k"), &session).await;
    assert!(desk.release(&handle).await.released);
}

/// The next in line need not wait for what a vanished caller's release does to its answer.
pub async fn a_vanished_release_hands_the_lock_on<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let waiting = desk.wait(&key("k"), &alone("waiter"), PATIENT).await;
    desk.hand.next(Method::Delete, Fate::ReplyLate);
    let front = Arc::clone(&desk.front);
    let (k, number, id) = (held.key.clone(), held.token, held.session);
    let leaving = tokio::spawn(async move { front.release(&k, number, &id).await });
    desk.hand.seen("it is released", |tally| tally.done == 1).await;
    leaving.abort();
    drop(leaving.await);
    desk.hand.deliver();
    let next = got(promptly("the next in line", waiting).await.expect("no panic"));
    assert!(next.token > held.token);
    assert_refused(desk.renew(&held).await, ErrorKind::LockLost);
}
