//! How far a run is. Whoever breaks things waits for progress and not for time, so that a slow
//! machine has its faults spread as a fast one has.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Cycles that are done, and whether the run was given up.
#[derive(Debug, Default)]
pub struct Progress {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    cycles: u64,
    given_up: bool,
}

impl Progress {
    /// One more cycle is done.
    pub fn advance(&self) {
        self.state().cycles += 1;
        self.changed.notify_all();
    }

    /// Waits until this many cycles are done; `false` if the run was given up before.
    #[must_use]
    pub fn reach(&self, cycles: u64) -> bool {
        let waits = |state: &mut State| state.cycles < cycles && !state.given_up;
        let state = self.changed.wait_while(self.state(), waits);
        !state.unwrap_or_else(PoisonError::into_inner).given_up
    }

    /// Whether somebody failed, so that the others need not go on.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.state().given_up
    }

    /// Gives the run up if the current thread dies before the guard does.
    #[must_use]
    pub fn give_up_on_panic(&self) -> impl Drop + '_ {
        GivesUp(self)
    }

    // A number and a flag are whole after a panic, too.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct GivesUp<'a>(&'a Progress);

impl Drop for GivesUp<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().given_up = true;
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_progress_or_with_failure() {
        let progress = Progress::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| progress.reach(2));
            progress.advance();
            progress.advance();
            assert!(waiter.join().unwrap());
            let waiter = scope.spawn(|| progress.reach(3));
            let failing = scope.spawn(|| {
                let _guard = progress.give_up_on_panic();
                panic!("on purpose");
            });
            assert!(failing.join().is_err());
            assert!(!waiter.join().unwrap());
        });
        assert!(progress.is_given_up());
    }
}
