//! The passing of time.

use core::time::Duration;
use std::pin::pin;

use dlock_domain::Ttl;

use crate::Harness;

/// Polls until `met`; fails after a generous while. For states that are reached by themselves and
/// of which nobody is told.
pub async fn until(what: &str, mut met: impl FnMut() -> bool) {
    for _ in 0..20_000_u32 {
        if met() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("did not come about: {what}");
}

/// Gives tasks that could run the chance to do so: where a case then asserts that something did
/// *not* happen, a right store never fails it and a wrong one has every opportunity.
pub async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Lets time pass in small steps until `work` is done; `None` when `within` has passed first.
pub async fn drive<H: Harness, F: Future>(h: &H, within: Duration, work: F) -> Option<F::Output> {
    const STEP: Duration = Duration::from_millis(20);
    let mut work = pin!(work);
    let mut passed = Duration::ZERO;
    loop {
        // Dropping the short sleep is harmless; `work` is only borrowed.
        tokio::select! {
            biased;
            output = &mut work => return Some(output),
            () = tokio::time::sleep(Duration::from_millis(2)) => {}
        }
        if passed >= within {
            return None;
        }
        h.pass(STEP).await;
        passed += STEP;
    }
}

/// Lets a lease of this lifetime, set just before, end for certain.
pub async fn outlive<H: Harness>(h: &H, ttl: Ttl) {
    h.pass(ttl.as_duration() + h.expiry_slack()).await;
}

/// Runs one case under a bound of real time, so that a hang is a failure that names itself.
pub async fn bounded(name: &str, case: impl Future<Output = ()>) {
    let bound = Duration::from_secs(120);
    if tokio::time::timeout(bound, case).await.is_err() {
        panic!("{name} hangs: not done after {bound:?}");
    }
}
