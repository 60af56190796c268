//! Random sequences of operations, against two judges.
//!
//! A sequence of [`Step`]s over few keys, sessions and attempts is drawn, run through a store's
//! ports, and checked after every answer, twice over:
//!
//! - by the [`Ledger`]: a bookkeeping of its own, written from the contracts and not from the
//!   domain's transition table, which knows from the history of answers alone what the next one
//!   must be (INV-01 to INV-04, INV-06, settled attempts, death of sessions, floors);
//! - in lockstep with the memory store on a clock that is moved by hand ([`Twins`] compares:
//!   tokens by identity and order, everything else by value).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `world` | the few keys, owners, lifetimes and attempts that sequences are about |
//! | `op` | what can be done, in terms that mean something to every store |
//! | `machine` | how sequences are drawn |
//! | `call` | an operation in one store's terms, and its answer |
//! | `client` | one store, and what its caller knows |
//! | `ledger` | the independent judge |
//! | `twins` | the comparison with the reference |
//! | `run` | one case: steps, lost replies, time |
//! | `search` | many cases, the same ones every time |
//! | `harness` | what a store brings to be tested |
//! | `slow_clock` | a clock that falls behind |
//! | `planted` | stores with one bug each, to show that the judges see |
//!
//! The same seed gives the same cases. `TEST_DLOCK_MODEL_CASES` raises their number. A failure that was
//! found belongs into `tests/regressions.rs`, as the short sequence that the search prints.

mod call;
mod client;
mod harness;
mod ledger;
mod machine;
mod op;
pub mod planted;
mod run;
mod search;
mod slow_clock;
mod twins;
mod world;

pub use call::{Answer, Call};
pub use harness::{CleanUp, Expiry, Harness, Keep, MemoryHarness, OwnTime, Subject};
pub use ledger::{Ledger, Seen};
pub use op::{AtLeast, Id, Op, Reply, Sess, Step, Tok, Who};
pub use run::{Judges, Wrong, run_case};
pub use search::{Failure, search};
pub use slow_clock::SlowClock;
pub use twins::Twins;
