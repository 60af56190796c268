//! When to end the command, from the lease and the time alone: pure.

use std::time::Duration;

use dlock_domain::{Moment, Ttl};

/// The longest time to go in peace when the lock is known to be lost: somebody else may hold it.
const LONGEST_GRACE: Duration = Duration::from_secs(5);

/// A lease, as far as ending the command before it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// The last moment at which the lock may be believed in.
    pub(super) deadline: Moment,
    /// Its lifetime.
    pub(super) ttl: Ttl,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing before this moment.
    Wait(Moment),
    /// Ask everything to end.
    Term,
    /// End everything, and again until nothing is left.
    Kill,
}

/// The course of a command's end. It goes one way: running, condemned, ending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    lease: Lease,
    condemned: bool,
    kill_at: Option<Moment>,
}

impl Lease {
    /// The moment of TERM.
    pub(super) fn term_at(self) -> Moment {
        self.deadline.before(self.ttl.as_duration() / 4)
    }

    /// The moment of KILL.
    pub(super) fn kill_at(self) -> Moment {
        self.deadline.before(self.ttl.as_duration() / 8)
    }

    /// The moment at which dlock ends everything itself, if the supervisor did not.
    pub(super) fn backstop(self) -> Moment {
        self.deadline.before(self.ttl.as_duration() / 16)
    }
}

impl Schedule {
    pub(super) const fn new(lease: Lease) -> Self {
        Self { lease, condemned: false, kill_at: None }
    }

    /// The lease was renewed. Too late once the end has begun: what was told to end is not told
    /// otherwise.
    pub(super) fn renew(&mut self, lease: Lease) {
        if self.kill_at.is_none() {
            self.lease = lease;
        }
    }

    /// The lock is lost, or dlock is gone: the end begins now.
    pub(super) fn condemn(&mut self) {
        self.condemned = true;
    }

    /// Whether the end has begun.
    pub(super) const fn ending(&self) -> bool {
        self.kill_at.is_some()
    }

    /// What is due now.
    pub(super) fn action(&self, now: Moment) -> Action {
        if let Some(kill_at) = self.kill_at {
            return if now >= kill_at { Action::Kill } else { Action::Wait(kill_at) };
        }
        if now >= self.lease.kill_at() {
            return Action::Kill;
        }
        let term_at = self.lease.term_at();
        if self.condemned || now >= term_at { Action::Term } else { Action::Wait(term_at) }
    }

    /// TERM was sent now: KILL follows by the deadline's schedule, at most an eighth of the
    /// lifetime later; sooner for a lock that is known to be lost.
    pub(super) fn begin(&mut self, now: Moment) {
        let eighth = self.lease.ttl.as_duration() / 8;
        let grace = if self.condemned { eighth.min(LONGEST_GRACE) } else { eighth };
        self.kill_at = Some(now.after(grace).min(self.lease.kill_at()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Moment = Moment::from_nanos(1_000_000_000_000_000);

    fn at(before_deadline: u64) -> Moment {
        DEADLINE.before(Duration::from_millis(before_deadline))
    }

    fn schedule(ttl_ms: u64) -> Schedule {
        Schedule::new(Lease { deadline: DEADLINE, ttl: Ttl::from_millis(ttl_ms).unwrap() })
    }

    #[test]
    fn term_a_quarter_and_kill_an_eighth_before_the_deadline() {
        let mut schedule = schedule(8_000);
        assert_eq!(schedule.action(at(6_000)), Action::Wait(at(2_000)));
        assert_eq!(schedule.action(at(2_000)), Action::Term);
        schedule.begin(at(2_000));
        assert_eq!(schedule.action(at(1_999)), Action::Wait(at(1_000)));
        assert_eq!(schedule.action(at(1_000)), Action::Kill);
        assert_eq!(schedule.action(at(0)), Action::Kill);
    }

    #[test]
    fn a_late_look_kills_at_once() {
        assert_eq!(schedule(8_000).action(at(1_000)), Action::Kill);
        assert_eq!(schedule(8_000).action(DEADLINE.after(Duration::from_secs(9))), Action::Kill);
        let mut late = schedule(8_000);
        late.begin(at(1_200));
        assert_eq!(late.action(at(1_100)), Action::Wait(at(1_000)));
    }

    #[test]
    fn a_renewal_moves_everything_until_the_end_has_begun() {
        let mut schedule = schedule(8_000);
        let later = Lease { deadline: DEADLINE.after(Duration::from_secs(3)), ..schedule.lease };
        schedule.renew(later);
        assert_eq!(schedule.action(at(2_000)), Action::Wait(later.term_at()));
        schedule.begin(later.term_at());
        assert!(schedule.ending());
        schedule.renew(Lease { deadline: Moment::NEVER, ..later });
        assert_eq!(schedule.action(later.kill_at()), Action::Kill);
    }

    #[test]
    fn a_known_loss_begins_at_once_and_is_short() {
        let mut day = schedule(Ttl::MAX_MILLIS);
        let now = at(Ttl::MAX_MILLIS - 1_000);
        assert_eq!(day.action(now), Action::Wait(at(Ttl::MAX_MILLIS / 4)));
        day.condemn();
        assert_eq!(day.action(now), Action::Term);
        day.begin(now);
        assert_eq!(day.action(now), Action::Wait(now.after(LONGEST_GRACE)));
        assert_eq!(day.action(now.after(LONGEST_GRACE)), Action::Kill);

        let mut near = schedule(8_000);
        near.condemn();
        near.begin(at(1_500));
        assert_eq!(near.action(at(1_400)), Action::Wait(at(1_000)));
    }

    #[test]
    fn a_deadline_at_the_clocks_start_is_past() {
        let lease = Lease { deadline: Moment::from_nanos(0), ..schedule(1_000).lease };
        assert_eq!(Schedule::new(lease).action(Moment::from_nanos(0)), Action::Kill);
    }
}
