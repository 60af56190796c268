//! Reading: what others may see of a lock.

use core::time::Duration;

use dlock_ports::Consistency;

use crate::{
    Harness,
    kit::{a, b, key, long, of, outlive, owner, private, private_for},
};

/// A free lock shows nothing, whatever the consistency, whether or not it was ever held.
pub async fn a_free_lock_shows_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for consistency in [Consistency::Follower, Consistency::Linearizable] {
        let seen = a.backend.locks.read(&key("never held"), consistency, a.by()).await;
        assert_eq!(seen.expect("read answers"), None);
    }
    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(b.release(&handle).await);
    assert_eq!(a.read(&key("k")).await, None);
    assert_eq!(b.read(&key("k")).await, None);
}

/// A held lock shows its holder, its token, and times near the truth.
pub async fn a_held_lock_shows_its_holder<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let before = a.wall();
    let session = a.open("Zoë (nightly)", long()).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let after = a.wall();
    for caller in [&a, &b] {
        let seen = caller.read(&key("k")).await.expect("held");
        assert_eq!(seen.key, key("k"));
        assert_eq!(seen.owner, owner("Zoë (nightly)"));
        assert_eq!(seen.session, Some(session.id));
        assert_eq!(seen.token, handle.token);
        assert_eq!(seen.waiter_count, 0);
        let second = Duration::from_secs(1);
        assert!(
            seen.acquired_at.after(second) >= before && seen.acquired_at <= after.after(second)
        );
        let ttl = session.ttl.as_duration();
        assert!(seen.server_expiry.after(second) >= before.after(ttl));
        assert!(seen.server_expiry <= after.after(ttl).after(second));
    }
    let nearby = a.backend.locks.read(&key("k"), Consistency::Follower, a.by()).await;
    let nearby = nearby.expect("read answers");
    assert!(nearby.is_none_or(|seen| seen.token == handle.token), "late perhaps, never wrong");
}

/// The shown expiry moves with the lease; reading moves nothing.
pub async fn the_shown_expiry_is_the_leases<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let handle = a.take(&key("k"), &private_for("worker", h.short_ttl())).await;
    let shown = b.read(&key("k")).await.expect("held").server_expiry;
    h.pass(handle.ttl.as_duration() / 2).await;
    let extended = a.extend(&handle).await.expect("live");
    let later = b.read(&key("k")).await.expect("held");
    assert!(later.server_expiry > shown);
    for _ in 0..3 {
        h.pass(handle.ttl.as_duration() / 4).await;
        b.read(&key("k")).await.expect("held");
    }
    outlive(h, extended.ttl).await;
    assert_eq!(b.read(&key("k")).await, None, "reading kept nothing alive");
}

/// Linearizable: what was answered to one is seen by the other, every time.
pub async fn a_linearizable_read_misses_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for _ in 0..20 {
        let handle = a.take(&key("k"), &private("worker")).await;
        assert_eq!(b.read(&key("k")).await.map(|info| info.token), Some(handle.token));
        assert!(a.release(&handle).await);
        assert_eq!(b.read(&key("k")).await, None);
    }
}
