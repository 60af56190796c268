//! The life of one client: it wants a lock, has it for a moment, gives it back, again and again,
//! and repeats what it was not answered.

use std::{thread::sleep, time::Duration};

use dlock_judge::ids::{Key, Nanos};

use super::{Acquired, Caller, Chance, Grant, Progress, Told};

/// How often an acquire of unknown outcome is repeated with the same attempt id.
const REPEATS: u32 = 5;

/// The pause after a failure: the server is being started again.
const PAUSE: Duration = Duration::from_millis(10);

/// What a lock is had for, now and then.
const WORK: Duration = Duration::from_millis(5);

/// Far longer than a restart, so that a lock outlives one.
const TTL_MS: u64 = 10_000;

/// The lifetime of a lock that is left behind.
const SHORT_TTL_MS: u64 = 1_000;

/// A client and what it has met so far.
#[derive(Debug)]
pub struct Worker<'run> {
    caller: Caller<'run>,
    keys: &'run [Key],
    chance: Chance,
    tally: Tally,
}

/// What clients met, beside what the judge can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Locks that were had and given back.
    pub cycles: u64,
    /// Locks that were had and left to expire.
    pub left_behind: u64,
    /// Locks that a repeated acquire found to be its own, or got.
    pub by_repeat: u64,
    /// Locks of which a release or renew said they are gone, after their deadline.
    pub lost: u64,
    /// The same *before* the deadline: a broken promise, for the store ends nothing early.
    pub lost_early: u64,
}

impl Tally {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            cycles: self.cycles + other.cycles,
            left_behind: self.left_behind + other.left_behind,
            by_repeat: self.by_repeat + other.by_repeat,
            lost: self.lost + other.lost,
            lost_early: self.lost_early + other.lost_early,
        }
    }
}

impl<'run> Worker<'run> {
    /// A client that wants some of these locks; its seed decides which and how.
    #[must_use]
    pub fn new(caller: Caller<'run>, keys: &'run [Key], seed: u64) -> Self {
        Self { caller, keys, chance: Chance::new(seed), tally: Tally::default() }
    }

    /// Lives for this many cycles, or until the run is given up.
    #[must_use]
    pub fn live(mut self, cycles: u64, progress: &Progress) -> Tally {
        let _guard = progress.give_up_on_panic();
        while self.tally.cycles < cycles && !progress.is_given_up() {
            let leave = self.chance.once_in(1_000);
            let Some(grant) = self.acquire(leave, progress) else { continue };
            if leave {
                self.tally.left_behind += 1;
            } else if self.use_and_release(grant, progress) {
                self.tally.cycles += 1;
                progress.advance();
            }
        }
        self.tally
    }

    /// One attempt, repeated while nobody knows what became of it.
    fn acquire(&mut self, short: bool, progress: &Progress) -> Option<Grant> {
        let key = &self.keys[usize::try_from(self.chance.below(self.keys.len() as u64)).ok()?];
        let ttl_ms = if short { SHORT_TTL_MS } else { TTL_MS };
        let max_wait_ms = if self.chance.once_in(3) { 0 } else { 50 + self.chance.below(1_000) };
        let attempt = self.chance.id();
        let mut repeats = 0;
        while !progress.is_given_up() {
            match self.caller.acquire(key, attempt, ttl_ms, max_wait_ms) {
                Told::Is(Acquired::Granted(grant)) => {
                    self.tally.by_repeat += u64::from(repeats > 0);
                    return Some(grant);
                }
                Told::Is(Acquired::Held) => return None,
                Told::Failed => sleep(PAUSE),
                // What it may hold ends with its lease.
                Told::Unknown if repeats == REPEATS => return None,
                Told::Unknown => repeats += 1,
            }
        }
        None
    }

    /// Whether the lock was given back; otherwise it was lost.
    fn use_and_release(&mut self, mut grant: Grant, progress: &Progress) -> bool {
        if self.chance.once_in(4) {
            match self.caller.renew(&grant) {
                Told::Is(Some(valid_until)) => grant.valid_until = valid_until,
                Told::Is(None) => return self.lost(grant.valid_until),
                Told::Failed | Told::Unknown => {}
            }
        }
        if self.chance.once_in(8) {
            sleep(WORK);
        }
        let mut unknown = false;
        loop {
            match self.caller.release(&grant) {
                Told::Is(released) if released || unknown => break,
                Told::Is(_) => return self.lost(grant.valid_until),
                Told::Failed if progress.is_given_up() => return false,
                Told::Failed => sleep(PAUSE),
                Told::Unknown => unknown = true,
            }
        }
        // Sometimes it forgets that it has given the lock back: nothing must come of it (J4).
        if self.chance.once_in(16) {
            let _ = self.caller.renew(&grant);
            let _ = self.caller.release(&grant);
        }
        true
    }

    fn lost(&mut self, valid_until: Nanos) -> bool {
        if self.caller.now() < valid_until {
            self.tally.lost_early += 1;
        } else {
            self.tally.lost += 1;
        }
        false
    }
}
