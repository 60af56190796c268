//! Letting go: by release, by drop, and half way through getting there.

use super::{
    odd::{Call, Do},
    *,
};

#[tokio::test]
async fn c23_a_thousand_guards_dropped_right_after_the_acquire() {
    let world = world();
    for n in 0..1_000_usize {
        let lock = world.guard("k").await;
        for _ in 0..n % 6 {
            tokio::task::yield_now().await;
        }
        drop(lock);
        world.locks.settled().await;
        assert!(world.holder("k").await.is_none(), "drop number {n}");
    }
    let made = world.odd.kept().len();
    world.pass_quickly(TTL * 3).await;
    assert_eq!(world.odd.kept().len(), made, "something renews");
    assert_eq!(Arc::strong_count(&world.odd), 2, "something lives on");
}

#[tokio::test]
async fn inv09_a_thousand_acquires_dropped_after_a_few_polls() {
    let world = world();
    let mut granted = 0;
    for n in 0..1_000_usize {
        let lock = polled(world.locks.lock("k").wait(TTL).acquire(), n % 8).await;
        granted += usize::from(lock.is_some());
        drop(lock);
        world.locks.settled().await;
        assert!(world.holder("k").await.is_none(), "drop number {n}");
    }
    assert!((1..1_000).contains(&granted), "{granted} were granted");
    world.pass_quickly(TTL * 3).await;
    assert_eq!(world.odd.kept(), Vec::<Vec<LockKey>>::new(), "something renews");
    assert_eq!(world.service.load().unsettled, 0);
}

#[tokio::test]
async fn an_acquire_dropped_while_it_waits_takes_nothing_later() {
    let world = world();
    let lock = world.guard("k").await;
    assert!(polled(world.locks.lock("k").wait(TTL * 2).acquire(), 30).await.is_none());
    lock.release().await.unwrap();
    world.locks.settled().await;
    breathe().await;
    assert!(world.holder("k").await.is_none());
    assert_eq!(world.service.load().waiting, 0);
}

#[tokio::test]
async fn a_grant_whose_reply_is_lost_is_settled_even_if_that_takes_several_tries() {
    let world = world();
    world.odd.acquires.next([Some(Do::Swallow)]);
    world.odd.forgets.next([Some(Do::Fail), Some(Do::Hang), Some(Do::Swallow)]);
    let Err(AcquireError::Failed(error)) = world.locks.lock("k").acquire().await else {
        panic!("the reply was swallowed")
    };
    assert!(error.is_transient());
    assert!(world.holder("k").await.is_some());
    world.pass(TTL / 2).await;
    world.locks.settled().await;
    assert!(world.holder("k").await.is_none());
    assert_eq!(world.odd.count(|call| matches!(call, Call::Forget(_))), 4);
    // A definite answer needs no settling.
    world.odd.acquires.next([Some(Do::Fail)]);
    assert!(world.locks.lock("k").acquire().await.is_err());
    assert_eq!(world.odd.count(|call| matches!(call, Call::Forget(_))), 4);
}

#[tokio::test]
async fn a_release_whose_reply_is_lost_is_repeated_and_counts() {
    let world = world();
    let lock = world.guard("k").await;
    world.odd.releases.next([Some(Do::Fail), Some(Do::Swallow)]);
    let release = tokio::spawn(lock.release());
    world.pass(TTL / 4).await;
    release.await.unwrap().unwrap();
    assert_eq!(world.odd.count(|call| matches!(call, Call::Release(_))), 3);
}

#[tokio::test]
async fn a_release_that_is_never_answered_gives_up_with_the_lease() {
    let world = world();
    let lock = world.guard("k").await;
    world.odd.releases.then(Some(Do::Hang));
    let start = world.clock.now();
    let release = tokio::spawn({
        let clock = world.clock.clone();
        async move { (lock.release().await, clock.now()) }
    });
    world.pass(TTL + TTL / 2).await;
    let (outcome, at) = release.await.unwrap();
    let Err(ReleaseError::Failed(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.applied(), dlock_domain::Applied::Unknown);
    assert!(at <= start.after(RELIABLE + TTL / 3), "a call under way is waited for, no longer");
    assert!(world.odd.count(|call| matches!(call, Call::Release(_))) >= 2);
    assert!(world.holder("k").await.is_none(), "its lease has ended");
    assert_eq!(world.odd.kept(), Vec::<Vec<LockKey>>::new(), "it was not renewed meanwhile");
}

#[tokio::test]
async fn a_release_goes_on_when_nobody_waits_for_it() {
    let world = world();
    let lock = world.guard("k").await;
    world.odd.releases.next([Some(Do::HoldRequest)]);
    assert!(polled(lock.release(), 3).await.is_none());
    assert!(world.holder("k").await.is_some());
    world.odd.gate.notify_one();
    world.locks.settled().await;
    assert!(world.holder("k").await.is_none());
    // Never polled at all, it is a drop.
    let lock = world.guard("k").await;
    drop(lock.release());
    world.locks.settled().await;
    assert!(world.holder("k").await.is_none());
}

#[tokio::test]
async fn trap_37_a_renewal_under_way_brings_no_released_lock_back() {
    for shared in [false, true] {
        let world = world();
        let session = world.locks.session("shared", TTL).await.unwrap();
        let lock = if shared { session.lock("k") } else { world.locks.lock("k") };
        let lock = lock.acquire().await.unwrap();
        // This keep-alive reaches the store after the release.
        world.odd.keeps.then(Some(Do::HoldRequest));
        let keeps = |keys: &Vec<LockKey>| keys.contains(&key("k"));
        while !world.odd.kept().iter().any(keeps) {
            world.pass(STEP).await;
        }
        world.odd.keeps.then(None);
        lock.release().await.unwrap();
        world.odd.gate.notify_waiters();
        breathe().await;
        assert!(world.holder("k").await.is_none());
        let next = world.guard("k").await;
        world.pass(TTL * 2).await;
        assert!(next.is_held());
        assert_eq!(world.holder("k").await.unwrap().token, next.token());
        drop(session);
    }
}

#[tokio::test]
async fn a_guard_dropped_on_a_thread_without_a_runtime_is_released_on_its_own() {
    let world = world();
    let lock = world.guard("k").await;
    std::thread::spawn(move || drop(lock)).join().unwrap();
    world.locks.settled().await;
    assert!(world.holder("k").await.is_none());
}

#[test]
fn a_guard_that_outlives_its_runtime_is_not_held_for_long_and_drops_quietly() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (world, lock) = runtime.block_on(async {
        let world = world();
        let lock = world.guard("k").await;
        (world, lock)
    });
    drop(runtime);
    assert!(lock.is_held(), "nobody renews it, and its deadline still is true");
    world.clock.advance(RELIABLE);
    assert!(!lock.is_held());
    drop(lock);
}

#[tokio::test]
async fn inv10_a_store_that_settles_nothing_is_not_asked_for_ever() {
    let world = world();
    world.odd.acquires.then(Some(Do::Swallow));
    world.odd.forgets.then(Some(Do::Hang));
    for n in 0..10_000 {
        let refused = world.locks.lock("k").acquire().await.unwrap_err();
        let AcquireError::Failed(error) = refused else { panic!("{n}: {refused}") };
        assert!(error.is_transient(), "{n}: {error}");
    }
    let refused = world.locks.lock("k").acquire().await.unwrap_err();
    let AcquireError::Failed(error) = refused else { panic!("{refused}") };
    assert_eq!(error.kind(), dlock_domain::ErrorKind::Limit { limit: "lock.max_unsettled" });
    assert_eq!(world.odd.count(|call| matches!(call, Call::Acquire(_))), 10_000);
}
