//! The resource's side of fencing: what a lock protects refuses the writes of a holder that lost
//! the lock without noticing.
//!
//! A lease alone is no mutual exclusion: its holder may be stopped for longer than the lease, and
//! write when it wakes up. Every grant of dlock carries a token greater than all before it; the
//! resource keeps the highest one that it has seen, and takes no write with a lower one (INV-05).
//! This crate needs neither a server nor a store of dlock's: a token is a number, wherever it came
//! from.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`HighWaterMark`], [`StaleToken`] | the rule itself, for any resource that can keep a number (from the domain) |
//! | [`resource`](Resource) | the name under which a resource keeps its mark |
//! | [`postgres`] | the rule as one statement in the caller's own transaction; feature `postgres`, on by default |
//!
//! Deliberately absent: connections, pools and transactions of our own. The mark has to move in the
//! transaction that writes, so both are the caller's.

#[cfg(feature = "postgres")]
pub mod postgres;
mod resource;

pub use dlock_domain::{FencingToken, HighWaterMark, LockError, StaleToken};
pub use resource::Resource;
