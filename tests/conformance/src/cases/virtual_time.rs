//! What only an advanced clock can tell apart: a millisecond, and a week.

use core::time::Duration;

use dlock_domain::Ttl;
use dlock_ports::Intent;

use crate::{
    harness::VirtualTime,
    kit::{a, assert_invalid, attempt, b, key, millis, of, private, private_for},
};

/// A lease lives to its last millisecond and not to the next.
pub async fn a_lease_ends_at_its_end<H: VirtualTime>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private_for("worker", millis(5_000))).await;
    h.pass(Duration::from_millis(4_999)).await;
    b.meet(&key("k"), &private("contender")).await;
    assert_eq!(b.read(&key("k")).await.map(|info| info.token), Some(handle.token));
    h.pass(Duration::from_millis(1)).await;
    assert_eq!(b.read(&key("k")).await, None);
    assert_eq!(a.extend(&handle).await, None);
    b.take(&key("k"), &private("contender")).await;
}

/// INV-03 to the nanosecond, where nothing passes during a call: what set the lease counts, less
/// the margin; a look and a repeat count what remains.
pub async fn inv03_deadlines_are_exact<H: VirtualTime>(h: &H) {
    let a = a(h);
    for lifetime in [millis(Ttl::MIN_MILLIS), millis(7_777), millis(Ttl::MAX_MILLIS)] {
        let reliable = lifetime.reliable();
        let opened = a.now();
        let session = a.open("worker", lifetime).await;
        assert_eq!(session.client_deadline.since(opened), reliable);
        h.pass(Duration::from_millis(400)).await;
        let named = attempt();
        let handle = a.take_as(&key("k"), &of(&session), named).await;
        assert!(handle.client_deadline.since(opened) <= reliable);
        let shot = a.now();
        let private = a.take(&key("private"), &private_for("worker", lifetime)).await;
        assert_eq!(private.client_deadline.since(shot), reliable);
        h.pass(Duration::from_millis(400)).await;
        let (looked, _) = a.look(&session.id).await.expect("live");
        assert!(looked.client_deadline.since(opened) <= reliable);
        let again = a.take_as(&key("k"), &of(&session), named).await;
        assert!(again.client_deadline.since(opened) <= reliable);
        let kept_at = a.now();
        let kept = a.keep(&session.id, &[&handle]).await.expect("live");
        assert_eq!(kept.session.client_deadline.since(kept_at), reliable);
        let extended = a.extend(&private).await.expect("live");
        assert_eq!(extended.client_deadline.since(kept_at), reliable);
        assert!(a.release(&private).await);
        assert!(a.close(&session.id).await);
    }
}

/// A private attempt that was settled stays settled for a week, whatever is reaped meanwhile.
pub async fn a_settled_private_attempt_is_remembered_for_a_week<H: VirtualTime>(h: &H) {
    let (a, b) = (a(h), b(h));
    let (before, after) = (attempt(), attempt());
    assert!(!a.forget(&key("k"), &private("worker"), before).await);
    a.take_as(&key("k"), &private("worker"), after).await;
    assert!(a.forget(&key("k"), &private("worker"), after).await);
    for _ in 0..7 {
        h.pass(Duration::from_secs(24 * 60 * 60) - Duration::from_millis(1)).await;
        b.reap(1_000).await;
        for named in [before, after] {
            let answer = b.shot(&key("k"), &private("worker"), named, Intent::Acquire).await;
            assert_invalid(answer, "attempt_id");
        }
    }
}
