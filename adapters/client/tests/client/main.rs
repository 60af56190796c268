//! The client from outside, against a server whose every answer the test writes.
#![expect(clippy::unwrap_used, reason = "a test that meets a surprise ends there")]
#![expect(clippy::panic, reason = "a test that meets a surprise ends there")]

mod deadlines;
mod dropping;
mod errors;
mod failover;
mod hostile;
mod keeping;
mod operating;
mod private;
mod repeating;
mod support;
mod waiting;
