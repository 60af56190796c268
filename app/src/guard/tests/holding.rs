//! While a lock is held: what the guard says, and what it never says.

use super::{
    odd::{Call, Do},
    *,
};
use crate::keeper::LossReason;

const INSTANT: Duration = Duration::from_nanos(1);

#[tokio::test]
async fn it_says_what_is_held_and_keeps_it() {
    let world = world();
    let lock = world.locks.lock("orders/42").wait(TTL).acquire().await.unwrap();
    assert_eq!(lock.key(), &key("orders/42"));
    assert_eq!(lock.remaining(), RELIABLE);
    let holder = world.holder("orders/42").await.unwrap();
    assert_eq!((holder.token, holder.owner.as_str()), (lock.token(), "tester"));
    world.pass(TTL * 4).await;
    assert!(lock.is_held());
    assert!(lock.remaining() > TTL / 2);
    assert!(!lock.cancellation().is_cancelled());
    assert_eq!(world.holder("orders/42").await.unwrap().token, lock.token());
    lock.release().await.unwrap();
    assert!(world.holder("orders/42").await.is_none());
}

#[tokio::test]
async fn values_that_are_none_are_refused_by_name_before_anything_is_asked() {
    let world = world();
    let lock = || world.locks.lock("k");
    for (lock, field) in [
        (world.locks.lock(""), "name"),
        (lock().namespace("No"), "namespace"),
        (lock().owner(""), "owner"),
        (lock().ttl(Duration::from_millis(999)), "ttl_ms"),
        (lock().wait(Duration::MAX), "max_wait_ms"),
    ] {
        let Err(AcquireError::Failed(error)) = lock.acquire().await else { panic!("{field}") };
        assert_eq!(error.field(), Some(field));
    }
    world.locks.settled().await;
    assert_eq!(world.odd.count(|call| !matches!(call, Call::Acquire(_))), 0);
    let builder = |owner, ttl| {
        let shared = &world.locks.shared;
        Locks::builder(world.odd.clone(), shared.clock.clone(), shared.entropy.clone())
            .owner(owner)
            .ttl(ttl)
            .build()
    };
    assert_eq!(builder("", TTL).unwrap_err().field(), Some("owner"));
    assert_eq!(builder("me", Duration::ZERO).unwrap_err().field(), Some("ttl_ms"));
}

#[tokio::test]
async fn who_does_not_get_it_learns_whose_it_is_and_not_their_secret() {
    let world = world();
    let lock = world.guard("k").await;
    let refused = world.locks.lock("k").owner("other").acquire().await.unwrap_err();
    assert_eq!(refused.to_string(), "not granted: tester holds the lock");
    let AcquireError::NotGranted { holder: Some(holder) } = refused else { panic!("{refused}") };
    assert_eq!((holder.token, holder.session), (lock.token(), None));
    let waiter = tokio::spawn(world.locks.lock("k").wait(TTL).acquire());
    breathe().await;
    let first = lock.token();
    lock.release().await.unwrap();
    let next = waiter.await.unwrap().unwrap();
    assert!(next.token() > first);
}

#[tokio::test]
async fn c10_not_held_from_the_first_instruction_after_a_pause() {
    let world = world();
    let lock = world.guard("k").await;
    // Nothing else runs in between: no await from here to the last assertion.
    world.clock.advance(RELIABLE - INSTANT);
    assert!(lock.is_held());
    assert_eq!(lock.remaining(), INSTANT);
    world.clock.advance(INSTANT);
    assert!(!lock.is_held());
    assert_eq!(lock.remaining(), Duration::ZERO);
    // The lease lasts a little longer than the belief in it, and that changes nothing.
    breathe().await;
    assert!(world.holder("k").await.is_some());
    assert!(!lock.is_held());
    assert!(lock.cancellation().is_cancelled());
}

#[tokio::test]
async fn c12_keep_alives_that_are_never_answered_are_loss_by_the_deadline() {
    let world = world();
    world.odd.keeps.then(Some(Do::Hang));
    let lock = world.guard("k").await;
    let start = world.clock.now();
    let told = tokio::spawn({
        let (cancelled, clock) = (lock.cancellation(), world.clock.clone());
        async move {
            cancelled.cancelled().await;
            clock.now()
        }
    });
    world.pass(RELIABLE - STEP * 2).await;
    assert!(lock.is_held() && ready(lock.lost()).is_none());
    world.pass(STEP * 2).await;
    // Several may wait, and late.
    let (first, second) = tokio::join!(lock.lost(), lock.lost());
    assert_eq!(first, second);
    assert_eq!((first.token, first.reason), (lock.token(), LossReason::DeadlinePassed));
    assert_eq!(first.key, key("k"));
    assert!(told.await.unwrap() <= start.after(RELIABLE));
    let made = world.odd.kept().len();
    assert!(made >= 2, "one dead call is not the end");
    world.pass(TTL).await;
    assert_eq!(world.odd.kept().len(), made, "what is lost is not renewed");
}

#[tokio::test]
async fn c13_two_failed_renewals_are_not_loss() {
    let world = world();
    world.odd.keeps.next([Some(Do::Fail), Some(Do::Swallow)]);
    let lock = world.guard("k").await;
    let token = lock.token();
    world.pass(TTL * 3).await;
    assert!(lock.is_held() && ready(lock.lost()).is_none());
    assert!(!lock.cancellation().is_cancelled());
    assert_eq!((lock.token(), world.holder("k").await.unwrap().token), (token, token));
}

#[tokio::test]
async fn c16_a_panic_of_the_holder_ends_renewals_and_frees_the_lock() {
    let world = world();
    let lock = world.guard("k").await;
    let died = tokio::spawn(async move {
        let _lock = lock;
        tokio::task::yield_now().await;
        panic!("the work went wrong");
    });
    assert!(died.await.unwrap_err().is_panic());
    world.locks.settled().await;
    assert!(world.holder("k").await.is_none());
    let made = world.odd.kept().len();
    world.pass(TTL * 2).await;
    assert_eq!(world.odd.kept().len(), made);
}

#[tokio::test]
async fn c17_a_keeper_that_panics_now_and_then_keeps_and_one_that_always_does_is_loss() {
    let world = world();
    let trouble = |n: u32| match n % 100 {
        98 => Some(Do::Panic),
        99 => Some(Do::Fail),
        _ => None,
    };
    world.odd.keeps.next((0..400).map(trouble));
    let lock = world.guard("k").await;
    while world.odd.kept().len() < 400 {
        world.pass_quickly(TTL).await;
        assert!(lock.is_held());
    }
    world.odd.keeps.then(Some(Do::Panic));
    world.pass(TTL).await;
    assert!(!lock.is_held());
    let loss = ready(lock.lost()).unwrap();
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
}

#[tokio::test]
async fn c19_after_a_sleep_longer_than_the_lease_the_guard_says_lost_at_once() {
    let world = world();
    let lock = world.guard("k").await;
    world.pass(TTL).await;
    let made = world.odd.kept().len();
    world.clock.advance(TTL * 100);
    assert!(!lock.is_held());
    assert_eq!(lock.lost().await.reason, LossReason::DeadlinePassed);
    assert!(lock.cancellation().is_cancelled());
    assert_eq!(world.odd.kept().len(), made, "it does not ask first");
    assert!(matches!(lock.release().await, Err(ReleaseError::Lost)));
}

#[tokio::test]
async fn a_revoked_lock_is_lost_with_the_next_keep_alive_and_stays_lost() {
    let world = world();
    let lock = world.guard("k").await;
    world.revoke("k").await;
    assert!(lock.is_held(), "nobody told it yet");
    world.pass(TTL / 2).await;
    let loss = lock.lost().await;
    // A private session ends with its lock.
    assert_eq!(loss.reason, LossReason::SessionGone);
    assert!(!lock.is_held() && lock.cancellation().is_cancelled());
    let next = world.guard("k").await;
    assert!(next.token() > lock.token());
    assert!(matches!(lock.release().await, Err(ReleaseError::Lost)));
    assert!(next.is_held());
    assert_eq!(world.holder("k").await.unwrap().token, next.token());
}

#[tokio::test]
async fn a_grant_that_arrives_after_its_lease_is_no_lock() {
    let world = world();
    world.odd.acquires.next([Some(Do::HoldReply)]);
    let acquire = tokio::spawn(world.locks.lock("k").acquire());
    breathe().await;
    assert!(world.holder("k").await.is_some());
    world.clock.advance(RELIABLE);
    world.odd.gate.notify_one();
    let Err(AcquireError::Failed(error)) = acquire.await.unwrap() else { panic!("a dead lock") };
    assert_eq!(error.kind(), dlock_domain::ErrorKind::LockLost);
    world.locks.settled().await;
    assert!(world.holder("k").await.is_none(), "it was given back");
}
