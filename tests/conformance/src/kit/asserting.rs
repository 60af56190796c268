//! What must hold of an answer.

use dlock_domain::{Applied, ErrorKind, LockError, LockHandle, Moment, Result, Ttl};
use dlock_ports::{Attempt, Observed};

/// The handle of a shot that must be granted.
pub fn granted(answer: Result<Attempt>) -> LockHandle {
    match answer {
        Ok(Attempt::Granted(handle)) => handle,
        other => panic!("expected a grant, got {other:?}"),
    }
}

/// The place of a shot that must meet a holder.
pub fn held(answer: Result<Attempt>) -> Observed {
    match answer {
        Ok(Attempt::Held(observed)) => observed,
        other => panic!("expected the lock to be held, got {other:?}"),
    }
}

/// Asserts the kind, and that nothing was applied.
pub fn assert_refused<T: core::fmt::Debug>(answer: Result<T>, kind: ErrorKind) {
    assert_failed(answer, kind, Applied::No);
}

/// Asserts that the field is wrong, and that nothing was applied.
pub fn assert_invalid<T: core::fmt::Debug>(answer: Result<T>, field: &'static str) {
    assert_refused(answer, ErrorKind::InvalidArgument { field });
}

/// Asserts a failure, exactly.
pub fn assert_failed<T: core::fmt::Debug>(answer: Result<T>, kind: ErrorKind, applied: Applied) {
    let error: LockError = answer.expect_err("expected a failure");
    assert_eq!((error.kind(), error.applied()), (kind, applied), "{error:?}");
    assert!(!error.detail().is_empty(), "an error says in words what was wrong");
}

/// Asserts INV-03 of a deadline that belongs to a lease which a call set: it counts from a moment
/// inside the call (`before` to `after`), over the smaller of both lifetimes, less the margin; and
/// it is of use.
pub fn assert_set_between(
    before: Moment,
    after: Moment,
    asked: Ttl,
    effective: Ttl,
    deadline: Moment,
) {
    assert!(effective >= asked, "a store rounds a lifetime up, never down");
    assert!(
        deadline <= after.holder_deadline(asked, effective),
        "INV-03: {deadline:?} believes in a lease for longer than it lasts"
    );
    assert!(deadline > before, "a fresh lease is worth something");
}
