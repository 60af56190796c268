//! dlock: a distributed lock service whose every grant carries a *fencing token*, a number that
//! only grows, so that a resource can refuse the writes of a holder that lost its lock without
//! noticing.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`Service`] | the use cases over whatever store it is given |
//! | [`wiring`] | building a store by name, its capabilities found once |
//! | [`guard`] | locks for Rust programs: acquired, kept, released, lost in time |
//! | [`keeper`] | the holder's side: keeping a session's lease, noticing loss |
//! | [`telemetry`] | metrics and log events |
//! | [`SystemClock`], [`OsEntropy`] | time and chance, for real |
//!
//! # Example: a lock in one process
//! ```
//! use std::{sync::Arc, time::Duration};
//! use dlock::{AcquireRequest, Acquired, LockService, OsEntropy, Service, ServiceConfig, SessionRef};
//! use dlock::{LockKey, LockName, Namespace, OwnerId, SystemClock, Ttl, wiring};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
//! let backend = wiring::memory(clock.clone(), entropy.clone());
//! let locks = Service::new(backend, clock, entropy, ServiceConfig::default());
//!
//! let key = LockKey::new(Namespace::default(), LockName::new("orders/42")?);
//! let acquired = locks
//!     .acquire(AcquireRequest {
//!         key: key.clone(),
//!         session: SessionRef::Private {
//!             owner: OwnerId::new("worker-1")?,
//!             ttl: Ttl::from_millis(10_000)?,
//!         },
//!         attempt: None,
//!         max_wait: Duration::from_secs(5),
//!     })
//!     .await?;
//! let Acquired::Granted(lock) = acquired else { return Err("somebody else has it".into()) };
//! // Hand `lock.token` to whatever the lock protects.
//! assert!(locks.release(&key, lock.token, &lock.session).await?.released);
//! # Ok(()) }
//! ```

#[cfg(feature = "cli")]
pub mod cli;
mod clock;
#[cfg(feature = "cli")]
pub mod config;
mod entropy;
pub mod guard;
pub mod keeper;
#[cfg(feature = "cli")]
pub mod prometheus;
#[cfg(feature = "cli")]
pub mod run;
mod service;
pub mod telemetry;
pub mod wiring;

pub use clock::SystemClock;
pub use dlock_domain::*;
pub use dlock_ports::*;
pub use entropy::OsEntropy;
pub use guard::{LockGuard, Locks};
pub use service::{Gauges, Load, Service, ServiceConfig};

/// The README's Rust example, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
