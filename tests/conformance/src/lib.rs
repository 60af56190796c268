//! One suite of cases, run on every store.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`harness`] | what a store brings: a fresh one per case, a second view of it, a clock |
//! | [`stores`] | the harnesses of the stores in this repository, in process and over HTTP |
//! | [`cases`] | what every store must do, one file an idea, each case one function |
//! | [`service_harness`], [`service_cases`] | the same for the service over a store |
//! | [`swallow`] | a hand on the wire: replies and requests that get lost or come late |
//! | [`dither`] | a store that dawdles, for calls that are dropped at random |
//! | [`notes`] | what a case found absent or measured, for `tasks/parity.md` |
//! | [`divergence`] | what differs between the stores, and why |
//! | [`shared_file`] | a resource that two processes guard with one lock |
//! | [`kit`], [`service_kit`] | short words for the cases |
//! | [`suite`], [`service_suite`] | the macros that make one named test of each case |
//!
//! A case asserts exact kinds and fields, and of a capability that a store lacks it asserts the
//! absence: nothing is ever skipped. Cases hold on stores whose time cannot be advanced, whose
//! tokens have gaps and which round lifetimes up; what needs an advanced clock stands apart.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "this crate is assertions, in functions that tests are made of"
)]

pub mod cases;
pub mod dither;
pub mod divergence;
pub mod harness;
pub mod kit;
pub mod notes;
pub mod service_cases;
pub mod service_harness;
pub mod service_kit;
pub mod service_suite;
pub mod shared_file;
pub mod stores;
pub mod suite;
pub mod swallow;

/// The machine's own clock, for stores that keep their own time.
pub use dlock::SystemClock;
pub use harness::{Expected, Harness, Limits, VirtualTime};
pub use service_harness::{Served, ServiceHarness};
