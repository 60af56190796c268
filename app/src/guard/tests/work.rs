//! Work under a lock: what stops it, in which order, and what comes of its value.

use std::sync::Mutex;

use dlock_domain::Moment;

use super::{
    odd::{Call, Do},
    *,
};
use crate::keeper::LossReason;

/// What happened, and when.
#[derive(Clone)]
struct Diary {
    clock: ManualClock,
    entries: Arc<Mutex<Vec<(&'static str, Moment)>>>,
}

impl Diary {
    fn new(world: &World) -> Self {
        Self { clock: world.clock.clone(), entries: Arc::default() }
    }

    fn note(&self, what: &'static str) {
        self.entries.lock().unwrap().push((what, self.clock.now()));
    }

    /// Notes the end of whatever owns the answer.
    fn at_the_end(&self) -> impl Send + use<> {
        struct End(Diary);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.note("ended");
            }
        }
        End(self.clone())
    }

    fn read(&self) -> Vec<(&'static str, Moment)> {
        self.entries.lock().unwrap().clone()
    }
}

fn released(world: &World) -> Moment {
    let calls = world.odd.calls();
    calls.iter().find(|(call, _)| matches!(call, Call::Release(_))).unwrap().1
}

#[tokio::test]
async fn the_value_of_work_that_held_the_lock_to_the_end() {
    let world = world();
    let (clock, service) = (world.clock.clone(), world.service.clone());
    let work = world.locks.with_lock("k", move |token, cancelled| async move {
        let holder = service.inspect(&key("k")).await.unwrap().unwrap();
        clock.sleep_until(clock.now().after(TTL * 3)).await;
        (holder.token == token, cancelled.is_cancelled())
    });
    let work = tokio::spawn(work);
    world.pass(TTL * 3 + STEP).await;
    assert_eq!(work.await.unwrap().unwrap(), (true, false));
    assert!(world.holder("k").await.is_none());
}

#[tokio::test]
async fn work_that_cannot_begin_is_not_begun() {
    let world = world();
    let _lock = world.guard("k").await;
    let outcome = world.locks.with_lock("k", |_, _| async { panic!("begun") }).await;
    let refused: WithLockError<()> = outcome.unwrap_err();
    let WithLockError::NotAcquired(AcquireError::NotGranted { holder }) = refused else {
        panic!("{refused:?}")
    };
    assert!(holder.is_some());
}

#[tokio::test]
async fn trap_36_cancelled_then_aborted_then_joined_then_released_before_the_lease_ends() {
    let world = world();
    world.odd.keeps.then(Some(Do::Hang));
    let (start, diary) = (world.clock.now(), Diary::new(&world));
    let work = tokio::spawn(world.locks.with_lock("k", {
        let diary = diary.clone();
        move |_, cancelled| async move {
            let _end = diary.at_the_end();
            cancelled.cancelled().await;
            diary.note("cancelled");
            std::future::pending::<()>().await;
        }
    }));
    world.pass(TTL + TTL / 2).await;
    let Err(WithLockError::Stopped { value: None, loss: None }) = work.await.unwrap() else {
        panic!("it was stopped while the lock was held")
    };
    let deadline = start.after(RELIABLE);
    let [("cancelled", cancelled), ("ended", ended)] = diary.read()[..] else {
        panic!("{:?}", diary.read())
    };
    let released = released(&world);
    let by = |moment: Moment, before: Duration| {
        let due = deadline.before(before);
        assert!(moment >= due && moment <= due.after(STEP * 2), "{:?} late", moment.since(due));
    };
    by(cancelled, TTL / 4);
    by(ended, TTL / 8);
    by(released, TTL / 8);
    assert!(cancelled <= ended && ended <= released && released < deadline);
}

#[tokio::test]
async fn work_that_ends_when_it_is_told_keeps_its_value_and_says_that_it_was_told() {
    let world = world();
    world.odd.keeps.then(Some(Do::Fail));
    let work = tokio::spawn(world.locks.with_lock("k", |_, cancelled| async move {
        cancelled.cancelled().await;
        "half of it"
    }));
    world.pass(RELIABLE - TTL / 4 + STEP * 2).await;
    let error = work.await.unwrap().unwrap_err();
    assert!(matches!(error, WithLockError::Stopped { value: Some(_), loss: None }));
    assert_eq!(error.into_value(), Some("half of it"));
    assert!(world.holder("k").await.is_none(), "released at once");
}

#[tokio::test]
async fn a_lock_that_is_known_to_be_lost_stops_the_work_at_once() {
    let world = world();
    let start = world.clock.now();
    let diary = Diary::new(&world);
    let work = tokio::spawn(world.locks.with_lock("k", {
        let diary = diary.clone();
        move |_, cancelled| async move {
            let _end = diary.at_the_end();
            cancelled.cancelled().await;
            diary.note("cancelled");
            std::future::pending::<()>().await;
        }
    }));
    breathe().await;
    world.revoke("k").await;
    world.pass(TTL).await;
    let Err(WithLockError::Stopped { value: None, loss: Some(loss) }) = work.await.unwrap() else {
        panic!("the lock was lost")
    };
    assert_eq!(loss.reason, LossReason::SessionGone);
    let [("cancelled", cancelled), ("ended", ended)] = diary.read()[..] else {
        panic!("{:?}", diary.read())
    };
    assert!(cancelled <= start.after(TTL / 2), "with the first keep-alive that says so");
    assert!(ended.since(cancelled) <= TTL / 8 + STEP * 2);
}

#[tokio::test]
async fn after_a_sleep_beyond_the_lease_the_work_is_aborted_without_grace() {
    let world = world();
    let diary = Diary::new(&world);
    let work = tokio::spawn(world.locks.with_lock("k", {
        let diary = diary.clone();
        move |_, _| async move {
            let _end = diary.at_the_end();
            std::future::pending::<()>().await;
        }
    }));
    breathe().await;
    world.clock.advance(TTL * 9);
    let woken = world.clock.now();
    let Err(WithLockError::Stopped { loss: Some(loss), .. }) = work.await.unwrap() else {
        panic!("the lock was lost")
    };
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
    assert_eq!(diary.read(), [("ended", woken)]);
}

#[tokio::test]
async fn work_that_ends_after_the_deadline_has_no_success_even_if_nobody_could_tell() {
    let world = world();
    // The release is answered only by a repeat that finds nothing: no evidence of a loss in that.
    world.odd.releases.next([Some(Do::Swallow)]);
    let clock = world.clock.clone();
    let work = tokio::spawn(world.locks.with_lock("k", move |_, _| async move {
        clock.advance(TTL * 2);
        5
    }));
    world.pass(TTL).await;
    let error = work.await.unwrap().unwrap_err();
    let WithLockError::Stopped { value: Some(5), loss: Some(loss) } = error else {
        panic!("{error:?}")
    };
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
}

#[tokio::test]
async fn a_loss_that_only_the_release_finds_comes_with_the_value() {
    let world = world();
    let service = world.service.clone();
    let outcome = world.locks.with_lock("k", |token, _| async move {
        // Behind everybody's back.
        let request = RevokeRequest {
            actor: OwnerId::new("operator").unwrap(),
            reason: dlock_domain::Reason::new("a test").unwrap(),
            expected: Some(token),
        };
        service.revoke(&key("k"), request).await.unwrap();
        5
    });
    let error = outcome.await.unwrap_err();
    assert!(matches!(error, WithLockError::Lost { value: 5 }), "{error:?}");
}

#[tokio::test]
async fn a_release_without_an_answer_is_not_called_success() {
    let world = world();
    world.odd.releases.then(Some(Do::Fail));
    let work = tokio::spawn(world.locks.with_lock("k", |_, _| async { 5 }));
    world.pass(TTL).await;
    let error = work.await.unwrap().unwrap_err();
    assert!(matches!(error, WithLockError::Unconfirmed { value: 5, .. }), "{error:?}");
}

#[tokio::test]
async fn c16_a_panic_of_the_work_comes_out_after_the_release() {
    let world = world();
    let work = tokio::spawn(world.locks.with_lock("k", |_, _| async {
        tokio::task::yield_now().await;
        panic!("the work went wrong")
    }));
    let died: Result<Result<(), WithLockError<()>>, _> = work.await;
    let panic = died.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the work went wrong"));
    assert!(world.holder("k").await.is_none());
    let made = world.odd.kept().len();
    world.pass(TTL * 2).await;
    assert_eq!(world.odd.kept().len(), made, "something renews");
}

#[tokio::test]
async fn trap_38_dropped_with_lock_ends_the_work_before_it_releases() {
    let world = world();
    for polls in 0..40 {
        let diary = Diary::new(&world);
        let before = world.odd.calls().len();
        let work = world.locks.with_lock("k", {
            let diary = diary.clone();
            move |_, _| async move {
                let _end = diary.at_the_end();
                diary.note("begun");
                std::future::pending::<()>().await;
            }
        });
        assert!(polled(work, polls).await.is_none());
        world.locks.settled().await;
        assert!(world.holder("k").await.is_none(), "dropped after {polls} polls");
        let notes: Vec<_> = diary.read().iter().map(|(what, _)| *what).collect();
        assert!(notes.is_empty() || notes == ["begun", "ended"], "{notes:?}");
        let calls = world.odd.calls().split_off(before);
        let released = calls.iter().any(|(call, _)| matches!(call, Call::Release(_)));
        assert!(notes.is_empty() || released);
    }
}

#[tokio::test]
async fn work_in_a_shared_session_and_with_a_wait() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    let first = session.lock("k").acquire().await.unwrap();
    let token = first.token();
    let work = tokio::spawn(session.lock("k").wait(TTL).with_lock(|token, _| async move { token }));
    breathe().await;
    first.release().await.unwrap();
    assert!(work.await.unwrap().unwrap() > token);
}
