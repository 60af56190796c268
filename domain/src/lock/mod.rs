//! A lock's states and events as one pure transition table.
//!
//! [`LockState`] × [`LockEvent`] → next state and [`Effect`]. Stores that can run it do (the
//! memory store); the others are checked against it. `table` holds the transitions, and its
//! tests go through every state and event.

mod event;
mod state;
mod table;

pub use event::{Effect, LockEvent, Proposal};
pub use state::{Grant, LockState};
