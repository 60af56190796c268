//! The line is cut: bytes vanish both ways, and nobody is told. Later it is healed, or not.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dlock::{
    ErrorKind, LockService, Moment,
    guard::{AcquireError, ReleaseError, WithLockError},
    keeper::LossReason,
};

use crate::world::{LONG, PATIENCE, SHORT, World, boot, soon, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c06_a_cut_shorter_than_the_lifetime_loses_nothing_and_waiting_resumes() {
    let world = World::new();
    let (desk, neighbour) = (world.holder_on_own_clock(2), world.neighbour(LONG));
    let (mine, theirs) = (desk.guard("mine").await, neighbour.lock("theirs").acquire().await);
    let waiter = tokio::spawn(desk.locks.lock("theirs").wait(LONG * 10).acquire());
    until("it waits", || world.client().waiters("theirs") == 1).await;

    world.proxy.cut();
    // A call ends by its own deadline, and says that it does not know.
    let (inspect, acquire) = (desk.client.inspect(mine.key()), desk.locks.lock("new").acquire());
    let (read, asked) = desk.drive(async { tokio::join!(inspect, acquire) }).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Contention);
    let Err(AcquireError::Failed(asked)) = asked else { panic!("{asked:?}") };
    assert_eq!(asked.kind(), ErrorKind::Contention, "{asked}");
    let unheard = world.proxy.counts().swallowed_to_server;
    desk.pass(LONG / 2).await;
    assert!(world.proxy.counts().swallowed_to_server > unheard, "renewals were tried");
    assert!(mine.is_held() && !waiter.is_finished());

    world.proxy.heal().await.unwrap();
    let before = mine.remaining();
    let renewed = async {
        while mine.remaining() <= before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    desk.drive(renewed).await;
    assert!(!waiter.is_finished(), "it still waits");
    theirs.unwrap().release().await.unwrap();
    let now_mine = desk.drive(waiter).await.unwrap().unwrap();
    assert_eq!(world.token("theirs"), Some(now_mine.token().get()));
    assert!(now_mine.is_held() && mine.is_held() && !mine.cancellation().is_cancelled());
    assert_eq!(world.token("mine"), Some(mine.token().get()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c06_a_cut_longer_than_the_lifetime_loses_what_it_must_and_waiting_resumes() {
    let world = World::new();
    let neighbour = world.neighbour(LONG);
    let (_, locks) = world.holder_on_boot_clock(SHORT);
    let theirs = neighbour.lock("theirs").acquire().await.unwrap();
    // Its session outlives the cut, so nothing is the matter with this one.
    let waiter = tokio::spawn(locks.lock("theirs").ttl(LONG).wait(LONG).acquire());
    until("it waits", || world.client().waiters("theirs") == 1).await;
    let mine = locks.lock("mine").acquire().await.unwrap();

    world.proxy.cut();
    assert_eq!(soon(mine.lost()).await.reason, LossReason::DeadlinePassed);
    assert!(!mine.is_held());
    let next = soon(neighbour.lock("mine").wait(PATIENCE).acquire()).await.unwrap();
    assert!(next.token() > mine.token());

    world.proxy.heal().await.unwrap();
    assert!(!mine.is_held(), "what is lost stays lost");
    assert!(matches!(mine.release().await, Err(ReleaseError::Lost)));
    assert_eq!(world.token("mine"), Some(next.token().get()), "its successor is not touched");
    assert!(!waiter.is_finished(), "it still waits");
    theirs.release().await.unwrap();
    let now_mine = soon(waiter).await.unwrap().unwrap();
    assert_eq!(world.token("theirs"), Some(now_mine.token().get()));
    assert!(now_mine.is_held() && next.is_held());
    now_mine.release().await.unwrap();
}

/// What the work did, and when, on the boot clock.
#[derive(Clone, Default)]
struct Seen {
    told: Arc<Mutex<Option<Moment>>>,
    last: Arc<Mutex<Option<Moment>>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_36_with_lock_ends_deaf_work_before_the_lease_can_end_when_the_line_is_cut() {
    let world = World::new();
    let (_, locks) = world.holder_on_boot_clock(SHORT);
    let seen = Seen::default();
    let work = locks.lock("k").with_lock({
        let seen = seen.clone();
        move |_, cancelled| async move {
            loop {
                let now = boot().now();
                if cancelled.is_cancelled() {
                    seen.told.lock().unwrap().get_or_insert(now);
                }
                // Told or not, it goes on.
                *seen.last.lock().unwrap() = Some(now);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let work = tokio::spawn(async move { work.await.map(|()| "done") });
    until("the work begins", || seen.last.lock().unwrap().is_some()).await;
    let token = world.token("k").unwrap();
    let next = tokio::spawn({
        let next = world.neighbour(LONG).lock("k").wait(PATIENCE);
        async move { (next.acquire().await.unwrap(), boot().now()) }
    });
    until("another waits", || world.client().waiters("k") == 1).await;
    world.proxy.cut();

    let (next, granted) = soon(next).await.unwrap();
    let (told, last) = (seen.told.lock().unwrap().unwrap(), seen.last.lock().unwrap().unwrap());
    assert!(told <= last && last < granted, "told {told:?}, last {last:?}, granted {granted:?}");
    assert!(next.token().get() > token);
    let stopped = soon(work).await.unwrap().unwrap_err();
    let WithLockError::Stopped { value: None, .. } = stopped else { panic!("{stopped}") };
    assert_eq!(*seen.last.lock().unwrap(), Some(last), "nothing of it runs any more");
    assert!(next.is_held());
}
