//! `dlock run`: a command that runs only while a lock is held (C3, trap 39).
//!
//! Two processes: `dlock` itself acquires, keeps the lease and releases; a small *supervisor*,
//! started from the same binary as `dlock supervise`, owns the command's processes and ends them
//! in time by itself, also when `dlock` is killed, stopped or hangs.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`execute`](execute()) | the story on dlock's side: acquire, keep, watch, release |
//! | [`request`](RunRequest) | what is to be run, and under which lock |
//! | [`exit`] | the exit codes, one table |
//! | `acquire`, `release` | its first and last act |
//! | `waiting`, `spinner` | who has the lock, for people at a terminal while dlock waits |
//! | `signals` | signals that dlock itself receives |
//! | `guard`, `rescue` | the supervisor as dlock sees it; what to do when it is gone |
//! | `message`, `lines` | what the two say to each other |
//! | `schedule` | when to end the command, from the lease alone: pure |
//! | `streams` | standard input and output, given away |
//! | `family` | the processes that descend from one, from `/proc` |
//! | [`supervisor`] | the other process |
//! | `raw` | the few calls that the compiler cannot check |
//! | `people` | messages to people |
//!
//! # What is promised
//! - The lock is kept, and released only when the command *and every process it left behind* are
//!   gone, as `flock` does with an inherited descriptor. A process that left the session
//!   (`setsid`, as daemons do) is not waited for, and not ended.
//! - When the lock is lost, or can no longer be guaranteed: TERM to all of them at the deadline
//!   less a quarter of the lifetime, KILL at the deadline less an eighth: nothing is left when
//!   the lease can end (C50). Once begun this is not taken back: the exit code is 79.
//! - The command gets standard input, output and error untouched, nothing else of ours, and the
//!   terminal if dlock had it.
//!
//! # What is not
//! A process that became another user's (`sudo`) cannot be ended, only waited for.
//! A supervisor that is itself stopped (`SIGSTOP`) ends nothing; dlock, if it runs, then does.
//! Stopping the command from the terminal (Ctrl-Z) has no lasting effect: it is continued, because
//! dlock could not stop with it without losing the lock.

mod acquire;
mod execute;
pub mod exit;
mod family;
mod guard;
mod lines;
mod message;
mod people;
mod raw;
mod release;
mod request;
mod rescue;
mod schedule;
mod signals;
mod spinner;
mod streams;
pub mod supervisor;
mod waiting;

pub use execute::execute;
pub(crate) use people::{escaped, say, shown};
pub use request::{Home, RunRequest};
