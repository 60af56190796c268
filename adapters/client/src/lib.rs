//! The lock service over HTTP, for remote users: [`LockService`](dlock_ports::LockService) from
//! one or several dlock servers (C2, C3).
//!
//! # Deadlines
//! A deadline is the moment at which the try was sent that was answered, plus the answer's
//! `valid_ms` (INV-03, trap 34); never later than one lifetime after the answer. `server_expiry` is
//! reckoned from the local wall clock, for display.
//!
//! # Failing over and trying again
//! - A call begins at the server that answered last. What fails for a reason that may pass is tried
//!   at the next server at once; when all have failed, again after a pause. `Retry-After` is
//!   honoured per server. [`RetryBudget`] bounds it all.
//! - What fails before a connection stands had no effect. Everything later (a time-out, a reset,
//!   half an answer, an answer without end, an answer that is not a dlock server's) is `Contention`
//!   of unknown effect for a write, and never a loss (INV-07).
//! - Every try of an acquire carries the same attempt id, the caller's or one chosen here, so that
//!   a repeat finds its own grant (C20). The other calls may be repeated by contract.
//! - An answer that says "nothing was done" after a try of unknown outcome is not handed on, since
//!   that try may have done it: `release` with `released: false`, `close_session` with `false`,
//!   `revoke` with a mismatch, are then `Contention` of unknown effect. Whoever repeats such a call
//!   knows that an earlier one of their own was unknown, and judges `false` by that. Of `forget`,
//!   `false` says only that this very try ended no grant.
//!
//! # Waiting
//! A wait is cut into polls of at most 30 s. It survives servers that restart, as long as failures
//! in a row don't last longer than [`RetryBudget::total`]. "Not granted" is certain: after a try of
//! unknown outcome the attempt is settled first, or, if the caller chose its id and may have
//! repeated it elsewhere, the answer is unknown.
//!
//! # Sessions of a lock's own
//! For [`SessionRef::Private`](dlock_ports::SessionRef::Private) the client opens a session, keeps
//! it alive while it waits, and closes it with the lock: released, forgotten, not granted, or
//! failed for good. So every attempt has a session that is known here, by which it can be settled.
//! One attempt has one session, whoever repeats it through this client; through another one, unless
//! it is made by [`RemoteLocks::beside`], the attempt is somebody else's. An attempt that was
//! answered is spent.
//!
//! # Who goes away
//! When an acquire's future is dropped its connection is closed, and what it may have been granted
//! is settled in the background, unless the caller chose the attempt's id and may come back
//! (INV-09, trap 38). [`RemoteLocks::shutdown`] waits for that.
//!
//! # TLS
//! No TLS provider is installed here; the binary does that, before it makes a client.
//!
//! # Map
//! | file | what it holds |
//! | --- | --- |
//! | `config`, `server_url` | what the client is told |
//! | `remote`, `core` | the service, and what its calls share |
//! | `call`, `reply`, `problem`, `failure`, `http` | one try: sent, read within bounds, judged |
//! | `tries` | which server next, and when |
//! | `acquire`, `ending`, `session`, `keep`, `release`, `operate` | the calls |
//! | `private`, `known` | sessions of a lock's own; what is remembered |
//! | `settle` | seeing to its end what nobody waits for |
//! | `grant`, `info`, `cursor`, `intern`, `text` | words of the wire |
//!
//! Deliberately absent: redirects, proxies, cookies, decompression; and any deadline of its own
//! that a guard could mistake for the lease's.

mod acquire;
mod call;
mod config;
mod core;
mod cursor;
mod ending;
mod failure;
mod grant;
mod http;
mod info;
mod intern;
mod keep;
mod known;
mod operate;
mod private;
mod problem;
mod release;
mod remote;
mod reply;
mod server_url;
mod session;
mod settle;
mod text;
mod tries;

pub use config::{ConfigError, RemoteConfig, RetryBudget};
pub use remote::RemoteLocks;
pub use server_url::ServerUrl;
