//! Waiters whose sessions nobody keeps, and lines that are full.

use std::time::Duration;

use dlock::{
    AcquireRequest, ErrorKind, LockService, OwnerId, SessionRef, Ttl, guard::AcquireError,
};

use crate::world::{LONG, PATIENCE, SHORT, World, key, soon, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c01_a_waiter_whose_keep_alives_stop_is_passed_over_and_told() {
    let world = World::new();
    let (neighbour, (_, locks)) = (world.neighbour(LONG), world.holder_on_boot_clock(SHORT));
    let first = neighbour.lock("k").acquire().await.unwrap();
    let doomed = tokio::spawn(locks.lock("k").wait(PATIENCE).acquire());
    until("it waits", || world.client().waiters("k") == 1).await;
    let other = tokio::spawn(neighbour.lock("k").wait(PATIENCE).acquire());
    until("another waits behind it", || world.client().waiters("k") == 2).await;
    world.proxy.cut();
    until("the server gives the first waiter up", || world.client().waiters("k") == 1).await;
    assert!(first.is_held(), "long before the lock is free");
    first.release().await.unwrap();
    let other = soon(other).await.unwrap().unwrap();
    assert_eq!(world.token("k"), Some(other.token().get()));
    world.proxy.heal().await.unwrap();
    let told = soon(doomed).await.unwrap().unwrap_err();
    let AcquireError::Failed(error) = &told else { panic!("{told:?}") };
    // Its own session, which it did not choose: whoever asks again gets another.
    assert_eq!(error.kind(), ErrorKind::Contention, "{error}");
    assert!(error.detail().contains("not kept alive"), "{error}");
    assert_eq!(world.token("k"), Some(other.token().get()), "and nothing was granted to it");
    assert!(other.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c02_a_waiter_in_a_session_that_nobody_keeps_fails_while_the_lock_is_held() {
    let world = World::new();
    let (client, _) = world.holder_on_boot_clock(SHORT);
    let first = world.neighbour(LONG).lock("k").acquire().await.unwrap();
    let (owner, ttl) = (OwnerId::new("dead").unwrap(), Ttl::from_millis(1_000).unwrap());
    let session = client.open_session(owner, ttl).await.unwrap();
    let request = AcquireRequest {
        key: key("k"),
        session: SessionRef::Id(session.id),
        attempt: None,
        max_wait: Duration::from_secs(3_600),
    };
    let told = soon(client.acquire(request)).await.unwrap_err();
    assert_eq!(told.kind(), ErrorKind::SessionExpired, "{told}");
    assert!(first.is_held());
    assert_eq!(world.token("k"), Some(first.token().get()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c09_a_full_line_refuses_the_newcomer_and_nobody_else() {
    let world = World::configured("[lock]\nmax_waiters_per_lock = 2\n");
    let (_, locks) = world.holder_on_boot_clock(LONG);
    let first = locks.lock("k").acquire().await.unwrap();
    let mut waiting = Vec::new();
    for count in 1..=2 {
        waiting.push(tokio::spawn(locks.lock("k").wait(PATIENCE).acquire()));
        until("it waits", || world.client().waiters("k") == count).await;
    }
    let refused = locks.lock("k").wait(PATIENCE).acquire().await.unwrap_err();
    let AcquireError::Failed(error) = &refused else { panic!("{refused:?}") };
    let limit = "lock.max_waiters_per_lock";
    assert_eq!(error.kind(), ErrorKind::Limit { limit }, "{error}");
    assert!(!waiting.iter().any(tokio::task::JoinHandle::is_finished));
    let mut last = first.token();
    first.release().await.unwrap();
    for waiter in waiting {
        let lock = soon(waiter).await.unwrap().unwrap();
        assert!(lock.token() > last, "in the order in which they came");
        last = lock.token();
        lock.release().await.unwrap();
    }
}
