//! Which grants of a session are strays: neither kept nor expected (trap 13).
//!
//! A stray comes from a duplicate of an acquire that arrived after the release, or from a caller
//! that went away with a grant nobody else can ask for. A grant counts as one only when two looks
//! in a row found it so: between its grant and [`add`](super::Keeper::add) it is nobody's for a
//! moment.

use std::collections::{HashMap, HashSet};

use dlock_domain::AttemptId;
use dlock_ports::HeldGrant;

/// Attempts under way, and what the last look found suspicious.
#[derive(Debug, Default)]
pub(super) struct Strays {
    expected: HashMap<AttemptId, u32>,
    suspects: HashSet<AttemptId>,
}

impl Strays {
    /// An acquire begins.
    pub(super) fn expect(&mut self, attempt: AttemptId) {
        *self.expected.entry(attempt).or_default() += 1;
    }

    /// One expectation of the attempt ends.
    pub(super) fn give_up(&mut self, attempt: AttemptId) {
        if let Some(count) = self.expected.get_mut(&attempt) {
            *count -= 1;
            if *count == 0 {
                self.expected.remove(&attempt);
            }
        }
    }

    /// Judges what a look found; answers what to release now. What is named and could not be
    /// released is named again by the next look.
    pub(super) fn judge(
        &mut self,
        found: Vec<HeldGrant>,
        kept: impl Fn(&HeldGrant) -> bool,
    ) -> Vec<HeldGrant> {
        let stray = |grant: &HeldGrant| !kept(grant) && !self.expected.contains_key(&grant.attempt);
        let strays: Vec<HeldGrant> = found.into_iter().filter(stray).collect();
        let suspects = strays.iter().map(|grant| grant.attempt).collect();
        let before = std::mem::replace(&mut self.suspects, suspects);
        strays.into_iter().filter(|grant| before.contains(&grant.attempt)).collect()
    }
}

#[cfg(test)]
mod tests {
    use dlock_domain::{FencingToken, LockKey, LockName, Namespace};

    use super::*;

    fn grant(number: u64) -> HeldGrant {
        HeldGrant {
            key: LockKey::new(
                Namespace::default(),
                LockName::new(&format!("lock-{number}")).unwrap(),
            ),
            token: FencingToken::from_user(number).unwrap(),
            attempt: AttemptId::from_bits(u128::from(number)),
        }
    }

    #[test]
    fn a_stray_is_named_by_the_second_look() {
        let mut strays = Strays::default();
        let kept = |grant: &HeldGrant| grant.token.get() == 1;
        assert_eq!(strays.judge(vec![grant(1), grant(2)], kept), vec![]);
        assert_eq!(strays.judge(vec![grant(1), grant(2)], kept), vec![grant(2)]);
        // Could not be released: named again.
        assert_eq!(strays.judge(vec![grant(1), grant(2)], kept), vec![grant(2)]);
        assert_eq!(strays.judge(vec![grant(1)], kept), vec![]);
        assert_eq!(strays.judge(vec![grant(2)], kept), vec![]);
    }

    #[test]
    fn an_expected_attempt_is_no_stray_until_every_expectation_ends() {
        let mut strays = Strays::default();
        let attempt = grant(2).attempt;
        strays.expect(attempt);
        strays.expect(attempt);
        strays.give_up(attempt);
        for _ in 0..3 {
            assert_eq!(strays.judge(vec![grant(2)], |_| false), vec![]);
        }
        strays.give_up(attempt);
        strays.give_up(attempt);
        assert_eq!(strays.judge(vec![grant(2)], |_| false), vec![]);
        assert_eq!(strays.judge(vec![grant(2)], |_| false), vec![grant(2)]);
    }
}
