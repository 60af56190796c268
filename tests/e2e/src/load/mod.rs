//! Many clients at once, whose every call is written down for the judge.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `clock` | the one monotonic clock of a run |
//! | `chance` | choices that are the same in every run |
//! | `caller` | a client that records: what it asks, what it is told, and when |
//! | `worker` | the life of one client: cycles of acquire, use and release |
//! | `progress` | how far they are, for whoever breaks things on the way |

mod caller;
mod chance;
mod clock;
mod progress;
mod worker;

pub use caller::{Acquired, Caller, Grant, Told};
pub use chance::Chance;
pub use clock::Clock;
pub use progress::Progress;
pub use worker::{Tally, Worker};
