//! Moments and deadlines: values that somebody hands in, never read from a clock here.

use core::time::Duration;

use crate::Ttl;

/// A moment on the clock of this boot that is monotonic and counts suspend, in nanoseconds.
///
/// Local to a process: over a wire, durations travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// A moment that no clock of ours reaches: for waits without end of their own.
    pub const NEVER: Self = Self(u64::MAX);

    /// A moment from the clock's nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The clock's nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment this much later; at the end of time it stays there.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// The moment this much earlier; at the clock's start it stays there.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The last moment at which a holder may believe in a lease (INV-03).
    ///
    /// `self` is the moment *before* the request left that last set the lease; the lease lasts the
    /// smaller of what was asked and what was granted; the margin comes off.
    #[must_use]
    pub fn holder_deadline(self, asked: Ttl, effective: Ttl) -> Self {
        self.after(asked.min(effective).reliable())
    }

    /// The same where somebody else set the lease: a look reported `remaining`, and `self` is the
    /// moment before the look left. The margin is that of the lease's `ttl`.
    #[must_use]
    pub fn holder_deadline_from_look(self, remaining: Duration, ttl: Ttl) -> Self {
        self.after(remaining.min(ttl.as_duration()).saturating_sub(ttl.margin()))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The end of a call's budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Moment);

impl Deadline {
    /// A deadline at this moment.
    #[must_use]
    pub const fn at(moment: Moment) -> Self {
        Self(moment)
    }

    /// The moment.
    #[must_use]
    pub const fn moment(self) -> Moment {
        self.0
    }

    /// What is left of the budget; zero when it is spent.
    #[must_use]
    pub const fn remaining(self, now: Moment) -> Duration {
        self.0.since(now)
    }

    /// Whether the budget is spent.
    #[must_use]
    pub fn is_past(self, now: Moment) -> bool {
        now >= self.0
    }

    /// The earlier of two.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        self.min(other)
    }
}

/// Unix milliseconds, for people to read: wall clocks jump, so nothing is decided by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// A wall time from unix milliseconds.
    #[must_use]
    pub const fn from_unix_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Unix milliseconds.
    #[must_use]
    pub const fn as_unix_millis(self) -> u64 {
        self.0
    }

    /// The wall time this much later.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_never_wraps() {
        let late = Moment::from_nanos(u64::MAX - 1);
        assert_eq!(late.after(Duration::MAX), Moment::NEVER);
        assert_eq!(Moment::from_nanos(5).before(Duration::MAX), Moment::from_nanos(0));
        assert_eq!(Moment::from_nanos(5).since(late), Duration::ZERO);
        assert_eq!(WallTime::from_unix_millis(1).after(Duration::MAX).as_unix_millis(), u64::MAX);
    }

    #[test]
    fn inv03_the_smaller_ttl_less_the_margin_from_before_the_request() {
        let ttl = |ms| Ttl::from_millis(ms).unwrap();
        let sent = Moment::from_nanos(7_000);
        let deadline = sent.holder_deadline(ttl(1_000), ttl(2_000));
        assert_eq!(deadline.since(sent), Duration::from_millis(950));
    }

    #[test]
    fn inv03_a_look_moves_a_deadline_only_by_what_remains() {
        let ttl = Ttl::from_millis(10_000).unwrap();
        let sent = Moment::from_nanos(0);
        let look = |ms| sent.holder_deadline_from_look(Duration::from_millis(ms), ttl).since(sent);
        assert_eq!(look(1_000), Duration::from_millis(800));
        assert_eq!(look(100), Duration::ZERO);
        assert_eq!(look(60_000), Duration::from_millis(9_800));
    }

    #[test]
    fn a_deadline_is_past_at_its_own_moment() {
        let deadline = Deadline::at(Moment::from_nanos(10));
        assert!(!deadline.is_past(Moment::from_nanos(9)));
        assert!(deadline.is_past(Moment::from_nanos(10)));
        assert_eq!(deadline.remaining(Moment::from_nanos(4)), Duration::from_nanos(6));
    }
}
