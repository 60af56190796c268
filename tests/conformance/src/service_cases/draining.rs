//! The end of a service: nothing new, what is held goes on, everything ends in bounded time.

use core::time::Duration;

use dlock_domain::{Applied, ErrorKind};
use dlock_ports::{AcquireRequest, SessionRef};

use crate::{
    ServiceHarness,
    kit::{assert_failed, assert_refused, attempt, drive, key, long, owner},
    service_kit::{PATIENT, alone, desk, desk_b, got, promptly, wish},
    swallow::{Fate, Method},
};

/// Who waits is told to ask another, and so is whoever comes; what is held can be kept, looked at
/// and released.
pub async fn draining_starts_nothing_and_breaks_nothing<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk(h).await, desk_b(h).await);
    let id = desk.open("worker", long()).await;
    let handle = desk.take(&key("k"), &SessionRef::Id(id)).await;
    let waiting = desk.wait(&key("k"), &alone("waiter"), PATIENT).await;
    let elsewhere = other.wait(&key("k"), &alone("elsewhere"), PATIENT).await;
    desk.service.drain();
    let answer = promptly("a waiter", waiting).await.expect("no panic");
    assert_refused(answer, ErrorKind::Draining);
    for max_wait in [Duration::ZERO, PATIENT] {
        let answer = desk.front.acquire(wish(&key("free"), &alone("late"), max_wait)).await;
        assert_refused(answer, ErrorKind::Draining);
    }
    let opened = desk.front.open_session(owner("late"), long()).await;
    assert_refused(opened, ErrorKind::Draining);
    assert_eq!(other.inspect(&key("free")).await, None);

    let listed = [(handle.key.clone(), handle.token)];
    assert_eq!(desk.front.keep_session(&id, &listed).await.expect("goes on").lost, []);
    assert!(desk.front.look_session(&id).await.is_ok());
    assert!(desk.renew(&handle).await.is_ok());
    assert!(desk.inspect(&key("k")).await.is_some());
    assert!(!elsewhere.is_finished(), "another server's waiters wait on");
    assert!(desk.release(&handle).await.released);
    let answer = drive(h, Duration::from_secs(30), elsewhere).await.expect("it wakes");
    assert!(answer.expect("no panic").is_ok());
    assert!(desk.front.close_session(&id).await.expect("goes on"));
}

/// Trap 42: a grant that comes while the end has begun is not handed out, and is not left held.
pub async fn nothing_is_granted_after_the_end_has_begun<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk(h).await, desk_b(h).await);
    desk.hand.next(Method::Insert, Fate::ReplyLate);
    let asking = desk.acquiring(wish(&key("k"), &alone("worker"), PATIENT));
    desk.hand.seen("it is granted", |tally| tally.done == 1).await;
    desk.service.drain();
    desk.hand.deliver();
    let answer = promptly("the grant", asking).await.expect("no panic");
    let unknown = !h.knows_whom_nobody_repeats();
    let applied = if unknown { Applied::Unknown } else { Applied::No };
    assert_failed(answer.map(drop), ErrorKind::Draining, applied);
    desk.at_rest().await;
    assert_eq!(other.inspect(&key("k")).await, None);
}

/// The same for a caller that chose its attempt's id: the outcome is said to be unknown, and a
/// repeat at another server finds the grant.
pub async fn a_named_attempt_is_found_at_another_server<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk(h).await, desk_b(h).await);
    let named = attempt();
    desk.hand.next(Method::Insert, Fate::ReplyLate);
    let request = wish(&key("k"), &alone("worker"), PATIENT);
    let asking = desk.acquiring(AcquireRequest { attempt: Some(named), ..request });
    desk.hand.seen("it is granted", |tally| tally.done == 1).await;
    let granted = other.inspect(&key("k")).await.expect("held");
    desk.service.drain();
    desk.hand.deliver();
    let answer = promptly("the grant", asking).await.expect("no panic");
    assert_failed(answer, ErrorKind::Draining, Applied::Unknown);
    desk.at_rest().await;
    let found = got(other.acquire_as(&key("k"), &alone("worker"), named).await);
    assert_eq!(found.token, granted.token);
    assert!(other.release(&found).await.released);
}

/// A shutdown waits for what is under way and then says that everything ended.
pub async fn a_shutdown_leaves_nothing_running<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let mut waiting = Vec::new();
    for _ in 0..5 {
        waiting.push(desk.wait(&key("k"), &alone("waiter"), PATIENT).await);
    }
    let ended = promptly("the end", desk.service.shutdown(Duration::from_secs(60))).await;
    assert!(ended, "everything ended");
    for waiting in waiting {
        assert_refused(waiting.await.expect("no panic"), ErrorKind::Draining);
    }
    let load = desk.service.load();
    assert_eq!((load.waiting, load.unsettled, load.tasks), (0, 0, 0));
    assert!(desk_b(h).await.renew(&held).await.is_ok(), "what is held is held");
}
