//! The memory store itself: judged by the ledger, which shares nothing with it, and beside a
//! second one, which shows that the comparison takes nothing for a difference that is none.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{Deadline, Moment};
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_model::{
    Expiry, Harness, Judges, Keep, MemoryHarness, OwnTime, Seen, SlowClock, Subject, search,
};
use dlock_ports::Clock as _;

#[expect(clippy::panic, reason = "a test fails by panicking, also in its helpers")]
fn run(harness: &dyn Harness, judges: Judges, seed: u8) -> Seen {
    search(harness, judges, seed).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Everything that the ledger tells apart; a search that never came to one of them proves nothing
/// about it.
const ALL: [&str; 36] = [
    "closed",
    "close of nothing",
    "expired with grants",
    "extend of a lost grant",
    "extended",
    "granted",
    "held",
    "insert for a dead session",
    "insert of a settled attempt",
    "insert of another's attempt",
    "keep-alive of nothing",
    "kept alive",
    "kept, with losses",
    "listed a part",
    "listed to the end",
    "look at nothing",
    "looked",
    "nothing to recover",
    "open refused",
    "opened",
    "opened again",
    "raise refused",
    "raised over grants",
    "raised over nothing",
    "read a holder",
    "read free",
    "recognised",
    "release refused",
    "released",
    "revoke mismatched",
    "revoked",
    "revoked a free lock",
    "settled a grant",
    "settled nothing",
    "too late",
    "dropped",
];

#[test]
fn inv01_inv02_inv04_inv06_hold_over_random_sequences() {
    let seen = run(&MemoryHarness { cases: 1_000 }, Judges::Ledger, 1);
    for what in ALL {
        let times = seen.get(what).copied().unwrap_or(0);
        assert!(times >= 20, "{what:?} was seen {times} times: {seen:#?}");
    }
    assert_eq!(seen.len(), ALL.len(), "{seen:#?}");
}

#[test]
fn a_second_memory_store_stays_in_step_with_the_first() {
    run(&MemoryHarness { cases: 400 }, Judges::Both, 2);
}

#[test]
fn the_same_seed_finds_the_same() {
    let harness = MemoryHarness { cases: 40 };
    let first = run(&harness, Judges::Both, 3);
    assert_eq!(first, run(&harness, Judges::Both, 3));
    assert_ne!(first, run(&harness, Judges::Both, 4));
}

/// A store that keeps its own time: the memory store on a clock that goes a tenth slow, as a
/// server's may. Its leases end up to a tenth late.
struct Slow;

struct SlowTime {
    own: ManualClock,
    slow: SlowClock,
}

#[async_trait]
impl OwnTime for SlowTime {
    fn now(&self) -> Moment {
        self.own.now()
    }

    fn deadline(&self, budget: Duration) -> Deadline {
        Deadline::at(self.slow.now().after(budget))
    }

    async fn pass(&self, duration: Duration) {
        self.own.advance(duration);
    }
}

#[async_trait]
impl Harness for Slow {
    fn name(&self) -> &str {
        "memory on a slow clock"
    }

    fn cases(&self) -> u32 {
        200
    }

    async fn fresh(&self, _clock: &ManualClock) -> Result<Subject, String> {
        let own = ManualClock::new();
        let slow = SlowClock::new(&own, 900);
        let entropy = Arc::new(SeededEntropy::new(2));
        let store = MemoryStore::new(Arc::new(slow.clone()), entropy);
        Ok(Subject {
            backend: store.backend(),
            expiry: Expiry::Window {
                early: Duration::from_millis(50),
                late: Duration::from_millis(400),
                time: Box::new(SlowTime { own, slow }),
            },
            drops_in_order: false,
            guard: Box::new(Keep(())),
        })
    }
}

#[test]
fn a_store_with_its_own_time_is_not_asked_at_uncertain_moments() {
    let seen = run(&Slow, Judges::Both, 5);
    assert!(seen.get("expired with grants").is_some_and(|times| *times > 0), "{seen:#?}");
}
