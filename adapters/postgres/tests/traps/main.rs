//! Traps 23 to 31 and the cases C18 and C40 to C47 on a real PostgreSQL. Each trap's naive statement
//! is kept beside the test: it is run in the same interleaving as the store's, and must go wrong
//! there, or the test would see nothing.
//!
//! Interleavings are made by connections that hold locks and by looking who waits for one
//! ([`Place::waiting`](kit::Place::waiting)), never by sleeping.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod alone;
mod batch;
mod bounds;
mod clocks;
mod durability;
mod failover;
mod history;
mod kit;
mod lease;
mod locked;
mod polls;
mod pooler;
mod raising;
mod roles;
mod session;
mod settings;
mod standby;
mod text;
mod tls;
mod token;
mod unknown;
