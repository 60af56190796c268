//! The attempts that were settled without a session.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use dlock_domain::{AttemptId, Moment};

/// Bounded memory of settled attempts: the oldest goes first, and none stays longer than anybody
/// could still repeat it.
#[derive(Debug)]
pub(crate) struct Settled {
    most: usize,
    marks: HashSet<AttemptId>,
    by_age: VecDeque<(Moment, AttemptId)>,
}

/// Far beyond any repeat of an acquire call, which waits an hour at most.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Settled {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, marks: HashSet::new(), by_age: VecDeque::new() }
    }

    pub(crate) fn contains(&self, attempt: AttemptId) -> bool {
        self.marks.contains(&attempt)
    }

    pub(crate) fn insert(&mut self, attempt: AttemptId, now: Moment) {
        if self.marks.insert(attempt) {
            self.by_age.push_back((now, attempt));
        }
        while let Some((since, ..)) = self.by_age.front() {
            if self.by_age.len() <= self.most && now.since(*since) <= KEPT_FOR {
                break;
            }
            if let Some((_, attempt)) = self.by_age.pop_front() {
                self.marks.remove(&attempt);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv10_the_oldest_mark_gives_way_and_marks_end_with_age() {
        let attempt = AttemptId::from_bits;
        let start = Moment::from_nanos(1);
        let mut settled = Settled::new(2);
        for bits in [1, 2, 2, 3] {
            settled.insert(attempt(bits), start);
        }
        let kept = [1, 2, 3].map(|bits| settled.contains(attempt(bits)));
        assert_eq!(kept, [false, true, true]);
        settled.insert(attempt(4), start.after(KEPT_FOR * 2));
        let kept = [2, 3, 4].map(|bits| settled.contains(attempt(bits)));
        assert_eq!(kept, [false, false, true]);
        assert_eq!(settled.by_age.len(), settled.marks.len());
    }
}
