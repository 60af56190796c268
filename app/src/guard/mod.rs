//! Locks for Rust programs, over any [`LockService`](crate::LockService): in process, embedded, or
//! over HTTP.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`locks`](Locks) | where locks come from, and what they assume |
//! | [`builder`](LockBuilder) | one lock, before it is held |
//! | [`lock_guard`](LockGuard) | a lock that is held |
//! | [`session`](LockSession) | a session that several locks share |
//! | `work` | work under a lock, stopped before the lease can end |
//! | [`blocking`] | the same for programs without an async runtime |
//! | [`error`](AcquireError) | why there is no lock, or no lock any more |
//! | `hold` | a session with its one keeper, shared by what lives in it |
//! | `pending` | an acquire under way, settled if nobody waits any more |
//! | `release`, `repeat` | giving back, asking again |
//! | `view` | what a holder may believe, and the task that tells when that changes |
//!
//! What holds throughout: a guard never says "held" beyond its deadline (INV-03); nothing renews a
//! lock that is being released, and what renews it dies with the guard (trap 37); a future may be
//! dropped at any await, and nothing stays held that nobody has (INV-09, trap 38). Deliberately
//! absent: anything that decides ownership, which is the store's alone.
//!
//! # Example
//! ```
//! use std::{sync::Arc, time::Duration};
//! use dlock::{OsEntropy, Service, ServiceConfig, SystemClock, guard::Locks, wiring};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
//! let backend = wiring::memory(clock.clone(), entropy.clone());
//! let service = Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
//! let locks = Locks::new(service, clock, entropy);
//!
//! let lock = locks
//!     .lock("orders/42")
//!     .ttl(Duration::from_secs(10))
//!     .wait(Duration::from_secs(5))
//!     .acquire()
//!     .await?;
//! // Hand the token to whatever the lock protects, which refuses any lower one.
//! let token = lock.token();
//! assert!(lock.is_held() && lock.remaining() > Duration::from_secs(5));
//! tokio::select! {
//!     lost = lock.lost() => return Err(lost.into()),
//!     () = async { /* the work */ } => {}
//! }
//! lock.release().await?;
//!
//! // Or let the work be stopped in time:
//! let newer = locks.with_lock("orders/42", |token, _cancelled| async move { token }).await?;
//! assert!(newer > token);
//! # Ok(()) }
//! ```
//!
//! # Example: many locks, one keeper
//! ```
//! # use std::{sync::Arc, time::Duration};
//! # use dlock::{OsEntropy, Service, ServiceConfig, SystemClock, guard::Locks, wiring};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
//! # let backend = wiring::memory(clock.clone(), entropy.clone());
//! # let service = Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
//! # let locks = Locks::new(service, clock, entropy);
//! let session = locks.session("billing", Duration::from_secs(10)).await?;
//! let a = session.lock("accounts/a").acquire().await?;
//! let b = session.lock("accounts/b").acquire().await?;
//! a.release().await?;
//! assert!(b.is_held());
//! // Frees what is left in one operation.
//! session.close().await?;
//! assert!(!b.is_held());
//! # Ok(()) }
//! ```

pub mod blocking;
mod builder;
mod error;
mod hold;
mod lock_guard;
mod locks;
mod pending;
mod release;
mod repeat;
mod session;
#[cfg(test)]
mod tests;
mod view;
mod work;

pub use builder::LockBuilder;
pub use error::{AcquireError, Loss, ReleaseError, WithLockError};
pub use lock_guard::LockGuard;
pub use locks::{Locks, LocksBuilder};
pub use session::LockSession;
