//! dlock's records, errors and rules.
//!
//! Everything that can be decided without asking the world is decided here, once: this crate has
//! no dependency, no clock, no I/O and no async. Stores, services and clients share it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`namespace`](Namespace), [`lock_name`](LockName), [`lock_key`](LockKey), [`owner`](OwnerId) | what is locked, and the label of who locks it |
//! | [`session_id`](SessionId), [`attempt_id`](AttemptId) | 128 random bits each: the secret of a session, the name of one acquire call |
//! | [`token`](FencingToken), [`floor`](TokenFloor), [`high_water_mark`](HighWaterMark) | the number that only grows, and both ends that check it |
//! | [`ttl`](Ttl), [`time`](Moment) | lifetimes, moments, deadlines; INV-03's arithmetic |
//! | [`session`](Session), [`handle`](LockHandle), [`info`](LockInfo), [`outcome`](LockOutcome) | what calls answer |
//! | [`error`](LockError) | the one closed error type |
//! | [`backoff`](Backoff) | full-jitter arithmetic, chance handed in |
//! | [`lock`] | a lock's states and events as one pure transition table |
//!
//! Invariants that hold of every value: constructors validate and fields are private, so a value
//! that exists is valid. What is deliberately absent: conversions from bare integers, token
//! arithmetic, `Display` for secrets.

mod attempt_id;
mod backoff;
mod error;
mod floor;
mod handle;
mod hex;
mod high_water_mark;
mod info;
mod invariant;
pub mod lock;
mod lock_key;
mod lock_name;
mod namespace;
mod outcome;
mod owner;
mod session;
mod session_id;
mod time;
mod token;
mod ttl;

pub use attempt_id::AttemptId;
pub use backoff::Backoff;
pub use error::{Applied, Disposition, ErrorKind, LockError, Result};
pub use floor::TokenFloor;
pub use handle::LockHandle;
pub use high_water_mark::{HighWaterMark, StaleToken};
pub use info::LockInfo;
pub use invariant::Invariant;
pub use lock_key::LockKey;
pub use lock_name::LockName;
pub use namespace::Namespace;
pub use outcome::{LockOutcome, Reason, RevocationRecord};
pub use owner::{OwnerId, is_printable};
pub use session::Session;
pub use session_id::SessionId;
pub use time::{Deadline, Moment, WallTime};
pub use token::FencingToken;
pub use ttl::Ttl;
