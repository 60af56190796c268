//! The highest revision known, and what it means when an answer is below it (trap 15).
//!
//! A cluster that is restored from a backup goes back in its history: revisions are given a second
//! time. That ends an *epoch* of this process's view. Revisions of different epochs are never
//! compared with each other; what outlives an epoch are numbers, tokens and floors.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was known when a request left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    epoch: usize,
    highest: i64,
}

/// An epoch that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its highest known revision.
    pub(crate) highest: i64,
    /// The first revision that was seen of the next one: what is later was written in that.
    pub(crate) next_began: i64,
}

/// The one view that this process has of the cluster's history.
pub(crate) struct History(Mutex<State>);

struct State {
    highest: i64,
    ended: Vec<Ended>,
}

impl History {
    /// What is known already, of an earlier life of this process.
    pub(crate) fn new(highest: i64, ended: Vec<Ended>) -> Self {
        Self(Mutex::new(State { highest, ended }))
    }

    /// Before a request leaves.
    pub(crate) fn known(&self) -> Known {
        let state = self.lock();
        Known { epoch: state.ended.len(), highest: state.highest }
    }

    /// The highest revision of this epoch.
    pub(crate) fn highest(&self) -> i64 {
        self.lock().highest
    }

    /// The epochs that have ended, oldest first.
    pub(crate) fn ended(&self) -> Vec<Ended> {
        self.lock().ended.clone()
    }

    /// Takes in a linearizable answer; says so if it ended an epoch. Only what was known *before* its
    /// request left counts: answers overtake each other.
    pub(crate) fn answered(&self, before: Known, revision: i64) -> Option<Ended> {
        let mut state = self.lock();
        if before.epoch != state.ended.len() {
            // Asked in an epoch that has ended meanwhile: nothing can be said of this one by it.
            return None;
        }
        if revision >= before.highest {
            state.highest = state.highest.max(revision);
            return None;
        }
        let ended = Ended { highest: state.highest, next_began: revision };
        state.ended.push(ended);
        state.highest = revision;
        Some(ended)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_15_going_back_is_seen_every_time_and_late_answers_are_not_taken_for_it() {
        let history = History::new(0, Vec::new());
        let early = history.known();
        assert_eq!(history.answered(history.known(), 100), None);
        // It left before 100 was known.
        assert_eq!(history.answered(early, 90), None);
        assert_eq!(history.highest(), 100);
        let late = history.known();
        let first = Ended { highest: 100, next_began: 40 };
        assert_eq!(history.answered(history.known(), 40), Some(first));
        assert_eq!(history.answered(late, 101), None, "of the ended epoch");
        assert_eq!((history.highest(), history.answered(history.known(), 41)), (40, None));
        assert_eq!(history.answered(history.known(), 60), None);
        // A second time, though all of it lies below the first.
        let second = Ended { highest: 60, next_began: 50 };
        assert_eq!(history.answered(history.known(), 50), Some(second));
        assert_eq!(history.ended(), [first, second]);
    }
}
