//! Operators: inspecting, listing, revoking, raising floors.

use core::time::Duration;

use dlock_domain::{ErrorKind, FencingToken, LockOutcome, Namespace, TokenFloor};
use dlock_ports::{ListRequest, SessionRef};

use crate::{
    ServiceHarness,
    kit::{assert_invalid, assert_refused, drive, key, long, ns, owner, revocation, until},
    notes::lacks,
    service_kit::{PATIENT, alone, desk, desk_b, got, promptly},
};

/// C25 through the service: a wrong expectation refused, the second revoke finds nothing held, a
/// free lock's floor still raised.
pub async fn c25_revoking<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let handle = a.take(&key("k"), &alone("worker")).await;
    let wrong = crate::kit::token(FencingToken::MAX);
    let outcome = b.front.revoke(&key("k"), revocation(Some(wrong))).await.expect("answers");
    assert_eq!(outcome, LockOutcome::Mismatch { current: Some(handle.token) });
    assert!(a.renew(&handle).await.is_ok(), "refused, so nothing happened");

    let outcome = b.front.revoke(&key("k"), revocation(Some(handle.token))).await;
    let LockOutcome::Revoked { previous, floor } = outcome.expect("answers") else {
        panic!("a held lock is revoked");
    };
    assert_eq!(previous, handle.token);
    assert!(!floor.admits(handle.token));
    assert_refused(a.renew(&handle).await, ErrorKind::LockLost);
    assert!(!a.release(&handle).await.released);

    let outcome = a.front.revoke(&key("k"), revocation(None)).await.expect("answers");
    let LockOutcome::Free { floor: second } = outcome else { panic!("nothing is held") };
    assert!(second > floor);
    let next = b.take(&key("k"), &alone("next")).await;
    assert!(second.admits(next.token), "INV-04: {} under {second}", next.token);
}

/// A revoke hands the lock to who waits for it, here and at another server.
pub async fn a_revoke_hands_the_lock_on<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let held = a.take(&key("k"), &alone("stuck")).await;
    let here = a.wait(&key("k"), &alone("here"), PATIENT).await;
    a.front.revoke(&key("k"), revocation(None)).await.expect("revoked");
    let next = got(promptly("the waiter here", here).await.expect("no panic"));
    assert!(next.token > held.token);
    let there = b.wait(&key("k"), &alone("there"), PATIENT).await;
    a.front.revoke(&key("k"), revocation(None)).await.expect("revoked");
    let answer = drive(h, Duration::from_secs(30), there).await.expect("it wakes");
    assert!(got(answer.expect("no panic")).token > next.token);
}

/// A look from outside: nothing of a free lock; of a held one its holder, and how many wait here.
pub async fn inspecting_shows_holder_and_waiters<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    assert_eq!(desk.inspect(&key("k")).await, None);
    let id = desk.open("worker", long()).await;
    let handle = desk.take(&key("k"), &SessionRef::Id(id)).await;
    let mut waiting = Vec::new();
    for count in 0..3_u32 {
        let seen = desk.inspect(&key("k")).await.expect("held");
        assert_eq!((&seen.key, &seen.owner), (&key("k"), &owner("worker")));
        assert_eq!((seen.token, seen.waiter_count), (handle.token, count));
        waiting.push(desk.wait(&key("k"), &alone("waiter"), PATIENT).await);
    }
    for task in &waiting {
        task.abort();
    }
    until("all have left", || desk.service.load().waiting == 0).await;
    desk.at_rest().await;
    assert_eq!(desk.inspect(&key("k")).await.expect("held").waiter_count, 0);
}

/// Listing: live locks, page by page, or `Unsupported` where the store cannot.
pub async fn listing_or_unsupported<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    for name in ["a", "b", "c"] {
        desk.take(&key(name), &alone("worker")).await;
    }
    let mut request =
        ListRequest { namespace: Namespace::default(), prefix: "".into(), after: None, limit: 2 };
    let answer = desk.front.list(request.clone()).await;
    if !h.expected().directory {
        lacks("directory");
        return assert_refused(answer.map(drop), ErrorKind::Unsupported);
    }
    let first = answer.expect("listed");
    assert_eq!(first.locks.len(), 2);
    request.after = first.next;
    assert!(request.after.is_some());
    let second = desk.front.list(request).await.expect("listed");
    assert_eq!((second.locks.len(), second.next), (1, None));
    assert_eq!(second.locks[0].key, key("c"));
}

/// Raising a floor ends the namespace's grants and hands them on above it, or is `Unsupported`
/// where the store cannot.
pub async fn raising_a_floor_or_unsupported<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let held = a.take(&key("k"), &alone("holder")).await;
    let waiting = a.wait(&key("k"), &alone("waiter"), PATIENT).await;
    let floor = TokenFloor::new(held.token.get() + 500).expect("a floor");
    let answer = a.front.raise_floor(&ns("default"), floor).await;
    if !h.expected().floors {
        lacks("floors");
        assert_refused(answer, ErrorKind::Unsupported);
        assert!(b.renew(&held).await.is_ok());
        waiting.abort();
        return;
    }
    let raised = answer.expect("raised");
    assert_eq!(raised.grants_ended, 1);
    assert!(raised.floor >= floor);
    assert_refused(b.renew(&held).await, ErrorKind::LockLost);
    let next = got(promptly("the waiter", waiting).await.expect("no panic"));
    assert!(raised.floor.admits(next.token), "INV-04");
    let leap = TokenFloor::new(FencingToken::MAX - 1).expect("a floor");
    assert_invalid(b.front.raise_floor(&ns("default"), leap).await, "at_least");
    assert!(b.renew(&next).await.is_ok(), "nothing happened");
}
