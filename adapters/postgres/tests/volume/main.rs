//! The PostgreSQL store with many rows, many names and many who want the same.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails, and says what it measured"
)]

mod contenders;
mod explain;
mod kit;
mod names;
