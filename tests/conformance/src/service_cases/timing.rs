//! What only an advanced clock can tell apart: the last 50 ms of a wait.

use core::time::Duration;

use dlock_domain::ErrorKind;
use dlock_ports::SessionRef;

use crate::{
    ServiceHarness, VirtualTime,
    kit::{assert_refused, drive, key, millis, settle},
    service_kit::{PATIENT, alone, desk, got, promptly, refused},
};

/// No shot but the first starts in the last 50 ms of a wait (C07): the lock, released too late,
/// stays free.
pub async fn c07_no_shot_in_the_last_50_ms<H: ServiceHarness + VirtualTime>(h: &H) {
    let desk = desk(h).await;
    for late in [951, 970, 999] {
        let held = desk.take(&key("k"), &alone("holder")).await;
        let began = desk.clock.now();
        let max_wait = Duration::from_millis(1_000);
        let mut waiting = desk.wait(&key("k"), &alone("waiter"), max_wait).await;
        let shots = desk.hand.shots().len();
        h.pass(Duration::from_millis(late)).await;
        assert!(desk.release(&held).await.released);
        settle().await;
        assert!(!waiting.is_finished(), "a wait lasts to its end");
        h.pass(Duration::from_millis(1_000 - late)).await;
        let answer = drive(h, Duration::from_secs(5), &mut waiting).await.expect("it ends");
        assert_eq!(refused(answer.expect("no panic")), None, "free, and not the caller's");
        for shot in &desk.hand.shots()[shots..] {
            let left = began.after(max_wait).since(*shot);
            assert!(left >= Duration::from_millis(50), "a shot with {left:?} left");
        }
        assert_eq!(desk.inspect(&key("k")).await, None);
    }
}

/// Just before the last 50 ms a release is granted to who waits.
pub async fn c07_a_shot_before_the_last_50_ms<H: ServiceHarness + VirtualTime>(h: &H) {
    let desk = desk(h).await;
    let held = desk.take(&key("k"), &alone("holder")).await;
    let waiting = desk.wait(&key("k"), &alone("waiter"), Duration::from_millis(1_000)).await;
    h.pass(Duration::from_millis(949)).await;
    assert!(desk.release(&held).await.released);
    got(promptly("the waiter", waiting).await.expect("no panic"));
}

/// The first shot is always made, however short the wait.
pub async fn the_first_shot_is_always_made<H: ServiceHarness + VirtualTime>(h: &H) {
    let desk = desk(h).await;
    for wait in [0, 1, 49] {
        let request =
            crate::service_kit::wish(&key("k"), &alone("worker"), Duration::from_millis(wait));
        let handle = got(desk.front.acquire(request).await);
        assert!(desk.release(&handle).await.released);
    }
}

/// C01, to the moment: B's session ends, A releases a millisecond later, long before the next look
/// at B's session. B is granted nothing; C, behind it, has the lock.
pub async fn c01_a_session_that_has_just_died<H: ServiceHarness + VirtualTime>(h: &H) {
    let desk = desk(h).await;
    let a = desk.take(&key("k"), &alone("a")).await;
    let id = desk.open("b", millis(3_000)).await;
    // The looks come at 1.5 s, 2.5 s, 3.5 s of the session's life.
    h.pass(Duration::from_millis(500)).await;
    let b = desk.wait(&key("k"), &SessionRef::Id(id), PATIENT).await;
    let c = desk.wait(&key("k"), &alone("c"), PATIENT).await;
    for _ in 0..5 {
        h.pass(Duration::from_millis(500)).await;
        settle().await;
    }
    h.pass(Duration::from_millis(1)).await;
    assert!(desk.release(&a).await.released);
    let answer = promptly("B is told", b).await.expect("no panic");
    assert_refused(answer, ErrorKind::SessionExpired);
    assert_eq!(got(promptly("C", c).await.expect("no panic")).owner.as_str(), "c");
}
