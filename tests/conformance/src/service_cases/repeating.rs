//! Attempts through the service: repeats, misuse, settling (C20, INV-09).

use core::time::Duration;

use dlock_domain::{Applied, AttemptId, ErrorKind, Result};
use dlock_ports::{AcquireRequest, Acquired, Current, Released, SessionRef};

use crate::{
    ServiceHarness,
    kit::{assert_failed, assert_invalid, attempt, drive, key, long, millis, session_id, until},
    service_kit::{
        Desk, PATIENT, alone, alone_for, desk, desk_b, desk_with, got, lingering, promptly,
        refused, short_of_time, wish,
    },
    swallow::{Fate, Method},
};

/// Long enough for a call to run out of its budget, and for what follows.
fn while_budgets_run_out<H: ServiceHarness>(h: &H) -> Duration {
    h.spent_budget() * 3 + Duration::from_secs(30)
}

/// C20: granted, the reply swallowed on the way to the service, which does not wait. The caller
/// repeats its attempt: the same token, immediately; one holder.
pub async fn c20_a_repeat_finds_the_swallowed_grant<H: ServiceHarness>(h: &H) {
    let desk = desk_with(h, h.backend(), short_of_time(h)).await;
    let id = desk.open("worker", long()).await;
    for session in [SessionRef::Id(id), alone("worker")] {
        let named = attempt();
        desk.hand.next(Method::Insert, Fate::ReplyLost);
        let done = desk.hand.tally().done;
        let request = wish(&key("k"), &session, Duration::ZERO);
        let asking = desk.acquiring(AcquireRequest { attempt: Some(named), ..request });
        desk.hand.seen("it is granted", |tally| tally.done > done).await;
        h.pass(h.spent_budget()).await;
        let answer = promptly("the budget is spent", asking).await.expect("no panic");
        assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
        let seen = desk.inspect(&key("k")).await.expect("it was granted");
        let found = got(promptly("a repeat", desk.acquire_as(&key("k"), &session, named)).await);
        assert_eq!(found.token, seen.token);
        assert!(desk.meet(&key("k"), &alone("other")).await.is_some());
        assert!(desk.release(&found).await.released);
        assert_eq!(desk.inspect(&key("k")).await, None);
    }
}

/// C20 inside one call: the service that waits repeats the shot itself, and does not wait for
/// itself.
pub async fn c20_a_waiting_call_finds_its_own_grant<H: ServiceHarness>(h: &H) {
    let desk = desk_with(h, h.backend(), short_of_time(h)).await;
    desk.hand.next(Method::Insert, Fate::ReplyLost);
    let done = desk.hand.tally().done;
    let asking = desk.acquiring(wish(&key("k"), &alone("worker"), PATIENT));
    desk.hand.seen("it is granted", |tally| tally.done > done).await;
    let seen = desk.inspect(&key("k")).await.expect("it was granted");
    h.pass(h.spent_budget()).await;
    let answer = drive(h, Duration::from_secs(30), asking).await.expect("it is found");
    assert_eq!(got(answer.expect("no panic")).token, seen.token);
}

/// INV-09: nobody can repeat an attempt whose id the service chose. What the store may have
/// granted is settled: granted already, or arriving long after the answer.
pub async fn inv09_an_unknown_outcome_is_settled<H: ServiceHarness>(h: &H) {
    let desk = desk_with(h, h.backend(), short_of_time(h)).await;
    let id = desk.open("worker", long()).await;
    for (fate, session) in [
        (Fate::ReplyLost, SessionRef::Id(id)),
        (Fate::ReplyLost, alone("worker")),
        (Fate::RequestLost, alone("worker")),
        (Fate::Late, SessionRef::Id(id)),
        (Fate::Late, alone("worker")),
    ] {
        let before = desk.hand.tally();
        desk.hand.next(Method::Insert, fate);
        let asking = desk.acquiring(wish(&key("k"), &session, Duration::ZERO));
        desk.hand.seen("it is on its way", |tally| tally.met > before.met).await;
        if fate == Fate::ReplyLost {
            desk.hand.seen("it is granted", |tally| tally.done > before.done).await;
        }
        h.pass(h.spent_budget()).await;
        let answer = promptly("the budget is spent", asking).await.expect("no panic");
        assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
        desk.at_rest().await;
        assert_eq!(desk.inspect(&key("k")).await, None, "{fate:?} was settled");
    }
    let done = desk.hand.tally().done;
    desk.hand.deliver();
    desk.hand.seen("both late ones arrive", |tally| tally.done == done + 2).await;
    assert_eq!(desk.inspect(&key("k")).await, None, "late grants never come to be");
    let handle = desk.take(&key("k"), &alone("next")).await;
    assert!(desk.release(&handle).await.released);
}

/// A settling whose own reply gets lost is repeated until it is done.
pub async fn inv09_settling_is_repeated_until_done<H: ServiceHarness>(h: &H) {
    let desk = desk_with(h, h.backend(), short_of_time(h)).await;
    desk.hand.next(Method::Insert, Fate::ReplyLost);
    desk.hand.next(h.settles_by(), Fate::RequestLost);
    desk.hand.next(h.settles_by(), Fate::ReplyLost);
    let asking = desk.acquiring(wish(&key("k"), &alone("worker"), Duration::ZERO));
    desk.hand.seen("it is granted", |tally| tally.done == 1).await;
    h.pass(h.spent_budget()).await;
    until("it is being seen to", || desk.unsettled() == 1).await;
    let answer = lingering(h, "the budget is spent", asking).await.expect("no panic");
    assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
    assert_eq!(desk.unsettled(), 1, "it is being seen to");
    for met in [2, 3] {
        let seen = desk.hand.seen("another try", |tally| tally.met == met);
        drive(h, Duration::from_secs(30), seen).await.expect("settling goes on");
        h.pass(h.spent_budget()).await;
    }
    drive(h, while_budgets_run_out(h), desk.at_rest()).await.expect("it is settled");
    assert_eq!(desk.inspect(&key("k")).await, None);
}

/// "Not granted" is certain also after a shot of unknown outcome: it was settled first, since nobody
/// else knows the attempt's id. A service that is told an id by its client says "unknown" instead;
/// then it is the client that settles the attempt.
pub async fn inv09_not_granted_means_settled<H: ServiceHarness>(h: &H) {
    let desk = desk_with(h, h.backend(), short_of_time(h)).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let answer = late_while_held(h, &desk, None).await;
    if h.knows_whom_nobody_repeats() {
        let holder = refused(answer).expect("it is held");
        assert_eq!(holder.token, held.token);
    } else {
        assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
        desk.at_rest().await;
    }
    assert!(desk.release(&held).await.released);
    desk.hand.deliver();
    desk.hand.seen("the late one arrives", |tally| tally.done == 1).await;
    assert_eq!(desk.inspect(&key("k")).await, None);
}

/// A caller who chose the attempt's id may have repeated it at another server: its attempt is not
/// settled behind its back (trap 13), and the answer is "unknown", never "no".
pub async fn inv07_a_repeatable_attempt_is_unknown_and_not_refused<H: ServiceHarness>(h: &H) {
    let desk = desk_with(h, h.backend(), short_of_time(h)).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let named = attempt();
    let error = late_while_held(h, &desk, Some(named)).await.expect_err("nobody knows");
    assert_eq!((error.kind(), error.applied()), (ErrorKind::Contention, Applied::Unknown));
    assert!(desk.release(&held).await.released);
    desk.hand.deliver();
    desk.hand.seen("the late one arrives", |tally| tally.done == 1).await;
    let late = desk.inspect(&key("k")).await.expect("it took effect after all");
    let found = got(desk.acquire_as(&key("k"), &alone("worker"), named).await);
    assert_eq!(found.token, late.token, "and its repeat finds it");
}

/// The same, when its caller gives it up at another server: `forget` settles what is still under
/// way, and the holder does not notice.
pub async fn inv09_forget_settles_a_repeatable_attempt<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk_with(h, h.backend(), short_of_time(h)).await, desk_b(h).await);
    let held = desk.take(&key("k"), &alone("holder")).await;
    let named = attempt();
    let answer = late_while_held(h, &desk, Some(named)).await;
    assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
    let answer = other.front.forget(&key("k"), &alone("worker"), named).await;
    assert!(!answer.expect("forget answers").released);
    assert!(desk.release(&held).await.released);
    desk.hand.deliver();
    desk.hand.seen("the late one arrives", |tally| tally.done == 1).await;
    assert_eq!(desk.inspect(&key("k")).await, None);
    assert_invalid(desk.acquire_as(&key("k"), &alone("worker"), named).await, "attempt_id");
}

/// Acquires a held lock; the first shot is under way for so long that its outcome is unknown.
async fn late_while_held<H: ServiceHarness>(
    h: &H,
    desk: &Desk,
    named: Option<AttemptId>,
) -> Result<Acquired> {
    let max_wait = h.spent_budget() + Duration::from_secs(5);
    desk.hand.next(Method::Insert, Fate::Late);
    let request = wish(&key("k"), &alone("worker"), max_wait);
    let asking = desk.acquiring(AcquireRequest { attempt: named, ..request });
    desk.hand.seen("it is on its way", |tally| tally.met == 1).await;
    h.pass(h.spent_budget()).await;
    let answer = drive(h, while_budgets_run_out(h), asking).await.expect("it ends");
    answer.expect("no panic")
}

/// The same attempt again, while its grant lives: the same grant, through whichever server.
pub async fn c20_repeats_are_one_grant<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let id = a.open("worker", long()).await;
    let mut set = a.clock.now();
    for session in [SessionRef::Id(id), alone("worker")] {
        let named = attempt();
        let first = got(a.acquire_as(&key("k"), &session, named).await);
        if session != SessionRef::Id(id) {
            set = a.clock.now();
        }
        for desk in [&a, &b, &a] {
            let again = got(desk.acquire_as(&key("k"), &session, named).await);
            assert_eq!((again.token, again.session), (first.token, first.session));
            // A store that counts in seconds may tell each of them another part of the truth.
            let bound = set.holder_deadline(long(), first.ttl);
            assert!(again.client_deadline <= bound.after(Duration::from_millis(1)));
        }
        assert!(b.release(&first).await.released);
        assert_eq!(a.inspect(&key("k")).await, None);
    }
}

/// An attempt belongs to one key, session, owner and lifetime; used for another it is refused, and
/// what it was granted stays.
pub async fn an_attempt_misused_is_refused<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let id = a.open("worker", long()).await;
    let other = a.open("worker", long()).await;
    let longer = alone_for("worker", millis(long().as_millis() * 2));
    for (session, wrong) in [
        (SessionRef::Id(id), vec![SessionRef::Id(other), alone("worker")]),
        (alone("worker"), vec![alone("worker-1"), longer, SessionRef::Id(id)]),
    ] {
        let named = attempt();
        let handle = got(a.acquire_as(&key("k"), &session, named).await);
        for wrong in &wrong {
            for desk in [&a, &b] {
                let answer = desk.acquire_as(&key("k"), wrong, named).await;
                assert_invalid(answer, "attempt_id");
            }
        }
        assert_invalid(a.acquire_as(&key("another"), &session, named).await, "attempt_id");
        let elsewhere = crate::kit::key_in("another", "k");
        assert_invalid(a.acquire_as(&elsewhere, &session, named).await, "attempt_id");
        assert_eq!(a.inspect(&key("another")).await, None);
        assert_eq!(b.renew(&handle).await.expect("undisturbed").token, handle.token);
        assert!(a.release(&handle).await.released);
    }
}

/// A server remembers what it recently finished: the attempt of a released grant is no new one.
pub async fn a_finished_attempt_is_refused<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let id = desk.open("worker", long()).await;
    for session in [SessionRef::Id(id), alone("worker")] {
        let named = attempt();
        let handle = got(desk.acquire_as(&key("k"), &session, named).await);
        assert!(desk.release(&handle).await.released);
        assert_invalid(desk.acquire_as(&key("k"), &session, named).await, "attempt_id");
        assert_eq!(desk.inspect(&key("k")).await, None);
    }
}

/// Forgetting ends the grant, hands the lock on, and settles the attempt at every server.
pub async fn forgetting_settles_for_good<H: ServiceHarness>(h: &H) {
    let (a, b) = (desk(h).await, desk_b(h).await);
    let id = a.open("worker", long()).await;
    for session in [SessionRef::Id(id), alone("worker")] {
        let named = attempt();
        let handle = got(a.acquire_as(&key("k"), &session, named).await);
        let waiting = a.wait(&key("k"), &alone("waiter"), PATIENT).await;
        let answer = a.front.forget(&key("k"), &session, named).await.expect("forget answers");
        assert!(answer.released);
        let next = got(promptly("the waiter", waiting).await.expect("no panic"));
        assert!(next.token > handle.token);
        let answer = b.front.forget(&key("k"), &session, named).await.expect("forget answers");
        assert_eq!(answer, Released { released: false, current: Current::Other });
        assert!(b.release(&next).await.released);
        for desk in [&a, &b] {
            assert_invalid(desk.acquire_as(&key("k"), &session, named).await, "attempt_id");
        }
        let unknown = attempt();
        let answer = b.front.forget(&key("k"), &session, unknown).await.expect("forget answers");
        assert_eq!(answer, Released { released: false, current: Current::None });
        for desk in [&a, &b] {
            assert_invalid(desk.acquire_as(&key("k"), &session, unknown).await, "attempt_id");
        }
        assert_eq!(a.inspect(&key("k")).await, None);
    }
    let gone = SessionRef::Id(session_id());
    let answer = a.front.forget(&key("k"), &gone, attempt()).await.expect("no error");
    assert!(!answer.released);
}

/// Forgetting an attempt that is still waiting: it is never granted.
pub async fn forgetting_a_waiting_attempt<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let named = attempt();
    let shots = desk.hand.tally().shots;
    let request = wish(&key("k"), &alone("worker"), PATIENT);
    let waiting = desk.acquiring(AcquireRequest { attempt: Some(named), ..request });
    desk.hand.seen("the first shot", |tally| tally.shots > shots).await;
    until("it waits", || desk.service.load().waiting == 1).await;
    let answer = desk.front.forget(&key("k"), &alone("worker"), named).await.expect("answers");
    assert!(!answer.released);
    assert!(desk.release(&held).await.released);
    let answer = promptly("its turn", waiting).await.expect("no panic");
    assert_invalid(answer, "attempt_id");
    assert_eq!(desk.inspect(&key("k")).await, None);
}
