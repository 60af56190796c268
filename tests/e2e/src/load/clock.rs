//! The one monotonic clock that a whole history shares.

use std::time::Instant;

use dlock_judge::ids::Nanos;

/// Counts nanoseconds from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the test is the outside world")]
    #[expect(clippy::new_without_default, reason = "a clock is made once and handed on")]
    pub fn new() -> Self {
        Self(Instant::now())
    }

    /// Now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the test is the outside world")]
    pub fn now(&self) -> Nanos {
        let passed = Instant::now().duration_since(self.0);
        Nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
    }
}
