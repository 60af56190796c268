//! Leaving: panics, drops, replies that are lost. Nothing stays held that nobody has, and nothing
//! renews what was given up (INV-09, trap 37).

use std::time::Duration;

use dlock::{AcquireRequest, Applied, AttemptId, ErrorKind, LockService, OwnerId, SessionRef, Ttl};

use crate::world::{Desk, LONG, PATIENCE, World, granted, key, soon};

/// Lets lifetimes pass and asserts that nobody says anything.
async fn nothing_is_renewed(world: &World, desk: &Desk) {
    let sent = world.sent();
    for _ in 0..60 {
        desk.clock.advance(LONG / 20);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(world.sent(), sent, "something is still being renewed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_work_that_panics_frees_the_lock_and_is_renewed_no_more() {
    let world = World::new();
    let desk = world.holder_on_own_clock(4);
    let work = desk.locks.with_lock("k", |_, _| async { panic!("the work went wrong") });
    let died = soon(tokio::spawn(async move { work.await.map(|()| "done") })).await.unwrap_err();
    assert!(died.is_panic());
    // The same of a guard that is held while something else panics.
    let lock = desk.guard("by hand").await;
    let died = tokio::spawn(async move {
        assert!(!lock.is_held(), "the work went wrong");
    });
    assert!(died.await.unwrap_err().is_panic());
    soon(desk.locks.settled()).await;
    assert_eq!((world.holder("k"), world.holder("by hand")), (None, None));
    nothing_is_renewed(&world, &desk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_guards_dropped_within_five_milliseconds_leave_the_lock_free() {
    let world = World::new();
    let desk = world.holder_on_own_clock(4);
    let mut last = 0;
    for round in 0..90_u64 {
        let lock = soon(desk.locks.lock("k").wait(PATIENCE).acquire()).await.unwrap();
        assert!(lock.token().get() > last, "one grant after the other");
        last = lock.token().get();
        tokio::time::sleep(Duration::from_millis(round % 6)).await;
        drop(lock);
    }
    soon(desk.locks.settled()).await;
    assert_eq!(world.holder("k"), None);
    nothing_is_renewed(&world, &desk).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c20_an_acquire_whose_reply_is_swallowed_finds_its_grant_by_its_attempt() {
    let world = World::new();
    let desk = world.holder_on_own_clock(1);
    let owner = OwnerId::new("holder").unwrap();
    let session = desk.client.open_session(owner, Ttl::from_duration(LONG).unwrap()).await.unwrap();
    let request = AcquireRequest {
        key: key("k"),
        session: SessionRef::Id(session.id),
        attempt: Some(AttemptId::from_bits(20)),
        max_wait: Duration::ZERO,
    };
    world.proxy.swallow_next_reply();
    let lost = desk.client.acquire(request.clone()).await.unwrap_err();
    assert_eq!((lost.kind(), lost.applied()), (ErrorKind::Contention, Applied::Unknown));
    assert_eq!(world.proxy.counts().replies_swallowed, 1);
    let token = world.token("k").expect("it was granted");
    // No wait is asked for, so "at once" is the only way to be granted.
    for _ in 0..2 {
        assert_eq!(granted(&desk.client, request.clone()).await.token.get(), token);
    }
    let other = AcquireRequest { attempt: Some(AttemptId::from_bits(21)), ..request };
    let refused = desk.client.acquire(other).await.unwrap();
    assert!(matches!(refused, dlock::Acquired::NotGranted { .. }), "{refused:?}");
    assert_eq!(world.token("k"), Some(token), "one holder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c20_a_guard_repeats_its_acquire_by_itself() {
    let world = World::new();
    let desk = world.holder_on_own_clock(4);
    let session = desk.locks.session("holder", LONG).await.unwrap();
    world.proxy.swallow_next_reply();
    let lock = desk.drive(session.lock("k").acquire()).await.unwrap();
    assert_eq!(world.proxy.counts().replies_swallowed, 1);
    assert_eq!(world.token("k"), Some(lock.token().get()));
    assert!(lock.is_held());
    lock.release().await.unwrap();
    assert_eq!(world.holder("k"), None);
}
