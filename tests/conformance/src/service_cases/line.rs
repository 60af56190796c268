//! The line: waiters of one server are served in order, and nobody is in another's way.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use dlock::ServiceConfig;
use dlock_domain::{ErrorKind, LockHandle};
use dlock_ports::{AcquireRequest, SessionRef};
use tokio::task::JoinSet;

use crate::{
    ServiceHarness,
    kit::{assert_refused, drive, key, long, until},
    service_kit::{PATIENT, alone, config, desk, desk_b, desk_with, got, promptly, wish},
    swallow::{Fate, Method},
};

/// J10: first come, first served.
pub async fn j10_waiters_are_served_in_order<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let mut held = desk.take(&key("k"), &alone("holder")).await;
    let mut waiting = Vec::new();
    for n in 0..6_usize {
        let session = alone(&format!("waiter-{n}"));
        waiting.push(desk.wait(&key("k"), &session, PATIENT).await);
        let seen = desk.inspect(&key("k")).await.expect("held");
        assert_eq!(seen.waiter_count as usize, n + 1);
    }
    for (n, next) in waiting.into_iter().enumerate() {
        assert!(!next.is_finished(), "not before its turn");
        assert!(desk.release(&held).await.released);
        let handle = got(promptly("the next in line", next).await.expect("no panic"));
        assert_eq!(handle.owner.as_str(), format!("waiter-{n}"));
        assert!(handle.token > held.token);
        held = handle;
    }
    assert!(desk.release(&held).await.released);
    desk.at_rest().await;
}

/// Who leaves the line, from wherever in it, holds up nobody.
pub async fn who_leaves_the_line_holds_up_nobody<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let mut waiting = Vec::new();
    for n in 0..5 {
        waiting.push(desk.wait(&key("k"), &alone(&format!("waiter-{n}")), PATIENT).await);
    }
    for gone in [0, 2, 4] {
        waiting[gone].abort();
    }
    until("three have left", || desk.service.load().waiting == 2).await;
    let mut last = held;
    for (n, next) in waiting.into_iter().enumerate() {
        if n % 2 == 0 {
            assert!(next.await.expect_err("aborted").is_cancelled());
            continue;
        }
        assert!(desk.release(&last).await.released);
        last = got(promptly("the next in line", next).await.expect("no panic"));
        assert_eq!(last.owner.as_str(), format!("waiter-{n}"));
    }
}

/// C03: three wait; the head is cancelled in the instant of its grant. The next has the lock at
/// once, without a lifetime in between.
pub async fn c03_the_head_vanishes_as_it_is_granted<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let mut waiting = Vec::new();
    for n in 0..3 {
        waiting.push(desk.wait(&key("k"), &alone(&format!("waiter-{n}")), PATIENT).await);
    }
    desk.hand.next(Method::Insert, Fate::ReplyLate);
    let done = desk.hand.tally().done;
    assert!(desk.release(&held).await.released);
    desk.hand.seen("the head is granted", |tally| tally.done > done).await;
    let granted = desk.inspect(&key("k")).await.expect("held");
    assert_eq!(granted.owner.as_str(), "waiter-0");
    waiting[0].abort();
    assert!((&mut waiting[0]).await.expect_err("aborted").is_cancelled());
    desk.hand.deliver();

    let last = waiting.pop().expect("three");
    let next = got(promptly("the second", waiting.remove(1)).await.expect("no panic"));
    assert_eq!(next.owner.as_str(), "waiter-1");
    assert!(next.token > granted.token);
    assert!(!last.is_finished());
    assert!(desk.release(&next).await.released);
    let last = got(promptly("the third", last).await.expect("no panic"));
    assert_eq!(last.owner.as_str(), "waiter-2");
}

/// C09: the limit of one line. The newcomer is refused at once, by name; those in line are not
/// disturbed; who does not wait needs no place.
pub async fn c09_a_line_is_limited<H: ServiceHarness>(h: &H) {
    let config = ServiceConfig { max_waiters_per_lock: 2, ..config(h) };
    let desk = desk_with(h, h.backend(), config).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let first = desk.wait(&key("k"), &alone("first"), PATIENT).await;
    let second = desk.wait(&key("k"), &alone("second"), PATIENT).await;
    for _ in 0..3 {
        let request = wish(&key("k"), &alone("third"), PATIENT);
        let answer = promptly("the one too many", desk.front.acquire(request)).await;
        assert_refused(answer, ErrorKind::Limit { limit: "lock.max_waiters_per_lock" });
    }
    assert!(desk.meet(&key("k"), &alone("no waiter")).await.is_some());
    desk.take(&key("other"), &alone("elsewhere")).await;
    let elsewhere = desk.wait(&key("other"), &alone("elsewhere"), PATIENT).await;
    assert!(!first.is_finished() && !second.is_finished() && !elsewhere.is_finished());

    assert!(desk.release(&held).await.released);
    let first = got(promptly("the first", first).await.expect("no panic"));
    // There is room again.
    let third = desk.wait(&key("k"), &alone("third"), PATIENT).await;
    assert!(desk.release(&first).await.released);
    let second = got(promptly("the second", second).await.expect("no panic"));
    assert!(desk.release(&second).await.released);
    assert_eq!(got(promptly("the third", third).await.expect("no panic")).owner.as_str(), "third");
}

/// C09: the limit of all lines together.
pub async fn c09_all_lines_together_are_limited<H: ServiceHarness>(h: &H) {
    let config = ServiceConfig { max_waiters: 2, ..config(h) };
    let desk = desk_with(h, h.backend(), config).await;
    let mut held = Vec::new();
    for name in ["k1", "k2", "k3"] {
        held.push(desk.take(&key(name), &alone("holder")).await);
    }
    let first = desk.wait(&key("k1"), &alone("first"), PATIENT).await;
    let second = desk.wait(&key("k2"), &alone("second"), PATIENT).await;
    for name in ["k1", "k3"] {
        let request = wish(&key(name), &alone("third"), PATIENT);
        let answer = promptly("the one too many", desk.front.acquire(request)).await;
        assert_refused(answer, ErrorKind::Limit { limit: "lock.max_waiters" });
    }
    for (waiting, handle) in [(first, &held[0]), (second, &held[1])] {
        assert!(desk.release(handle).await.released);
        got(promptly("who was in line", waiting).await.expect("no panic"));
    }
    let third = desk.wait(&key("k3"), &alone("third"), PATIENT).await;
    assert!(desk.release(&held[2]).await.released);
    got(promptly("the third", third).await.expect("no panic"));
}

/// Many who wait at two servers: one holder at a time, all get their turn, tokens rise in the
/// order of the grants.
pub async fn all_get_their_turn_at_two_servers<H: ServiceHarness>(h: &H) {
    let desks = [desk(h).await, desk_b(h).await];
    let inside = Arc::new(AtomicU32::new(0));
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for n in 0..16 {
        let front = Arc::clone(&desks[n % 2].front);
        let (inside, order) = (Arc::clone(&inside), Arc::clone(&order));
        tasks.spawn(async move {
            for _ in 0..4 {
                let request = wish(&key("k"), &alone("worker"), PATIENT);
                let handle: LockHandle = got(front.acquire(request).await);
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "INV-01");
                order.lock().expect("no task fails").push(handle.token);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                let released = front.release(&handle.key, handle.token, &handle.session).await;
                assert!(released.expect("release answers").released);
            }
        });
    }
    let all = async {
        while let Some(done) = tasks.join_next().await {
            done.expect("no task fails");
        }
    };
    drive(h, Duration::from_secs(1_800), all).await.expect("all get their turn");
    let order = order.lock().expect("no task fails");
    assert_eq!(order.len(), 64);
    assert!(order.is_sorted_by(|earlier, later| earlier < later), "INV-04: {order:?}");
}

/// A session may wait for many locks at once, and hold many.
pub async fn one_session_waits_in_many_lines<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let session = SessionRef::Id(desk.open("worker", long()).await);
    let mut held = Vec::new();
    let mut waiting = Vec::new();
    for n in 0..5 {
        let key = key(&format!("k{n}"));
        held.push(desk.take(&key, &alone("holder")).await);
        let request = AcquireRequest { max_wait: PATIENT, ..wish(&key, &session, PATIENT) };
        waiting.push(desk.wait(&key, &session, request.max_wait).await);
    }
    for (handle, waiting) in held.iter().zip(waiting).rev() {
        assert!(desk.release(handle).await.released);
        let next = got(promptly("its lock", waiting).await.expect("no panic"));
        assert_eq!(next.key, handle.key);
    }
    let SessionRef::Id(id) = session else { panic!("an open session") };
    let (_, grants) = desk.front.look_session(&id).await.expect("open");
    assert_eq!(grants.len(), 5);
}
