//! Locks for programs without an async runtime.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod` | [`Locks`], [`LockBuilder`] |
//! | [`lock_guard`](LockGuard) | a lock that is held |
//! | `engine` | the thread with the private runtime |
//!
//! The service's tasks and the keepers run on a private runtime in a thread of its own, so that
//! locks are kept whatever the calling threads do. The calls block; made inside an async runtime,
//! `spawn_blocking` included, they fail with `Unsupported` and say so instead of blocking it: the
//! [async flavour](super::Locks) is the one to use there.
//!
//! # Example
//! ```
//! use std::{sync::Arc, time::Duration};
//! use dlock::{OsEntropy, Service, ServiceConfig, SystemClock, guard, wiring};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = guard::blocking::Locks::start(|| {
//!     // Inside the private runtime, where a service wants to be made.
//!     let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
//!     let backend = wiring::memory(clock.clone(), entropy.clone());
//!     let service =
//!         Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
//!     guard::Locks::new(service, clock, entropy)
//! })?;
//!
//! let lock = locks.lock("orders/42").ttl(Duration::from_secs(10)).acquire()?;
//! let token = lock.token();
//! assert!(lock.is_held());
//! lock.release()?;
//!
//! let newer = locks.lock("orders/42").with_lock(|token, _cancelled| token)?;
//! assert!(newer > token);
//! # Ok(()) }
//! ```

mod engine;
mod lock_guard;

use std::{fmt, io, sync::Arc, time::Duration};

use dlock_domain::FencingToken;
use tokio_util::sync::CancellationToken;

use super::{AcquireError, ReleaseError, WithLockError};

pub use lock_guard::LockGuard;

use engine::Engine;

/// Where locks come from, for programs without an async runtime. Clones share one private runtime,
/// which ends with the last of them and of their guards.
#[derive(Clone)]
pub struct Locks {
    locks: super::Locks,
    engine: Arc<Engine>,
}

/// One lock, before it is held; as [`guard::LockBuilder`](super::LockBuilder).
#[must_use = "nothing is acquired before `acquire`"]
pub struct LockBuilder {
    lock: super::LockBuilder,
    engine: Arc<Engine>,
}

impl Locks {
    /// Starts a private runtime in a thread of its own, and makes the locks inside it.
    ///
    /// When the last clone and the last guard are dropped, releases that they began get one second
    /// to be answered, then the thread ends; the drop waits for that, except inside an async
    /// runtime.
    ///
    /// # Errors
    /// The system's, if it gives no thread or no runtime; or that `make` panicked.
    pub fn start(make: impl FnOnce() -> super::Locks + Send + 'static) -> io::Result<Self> {
        let (engine, locks) = Engine::start(make)?;
        Ok(Self { locks, engine: Arc::new(engine) })
    }

    /// The lock of this name.
    pub fn lock(&self, name: &str) -> LockBuilder {
        LockBuilder { lock: self.locks.lock(name), engine: self.engine.clone() }
    }
}

impl LockBuilder {
    /// The namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.lock = self.lock.namespace(namespace);
        self
    }

    /// How long the lock lives without being kept: 1 s to 24 h, whole milliseconds.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.lock = self.lock.ttl(ttl);
        self
    }

    /// How long to wait for the lock while somebody else has it: 0 (ask once) to 1 h.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.lock = self.lock.wait(wait);
        self
    }

    /// The label, for people, of whoever holds the lock.
    pub fn owner(mut self, owner: &str) -> Self {
        self.lock = self.lock.owner(owner);
        self
    }

    /// Acquires the lock, blocking this thread for at most the wait and one call.
    ///
    /// # Errors
    /// As [`guard::LockBuilder::acquire`](super::LockBuilder::acquire); `Unsupported` inside an
    /// async runtime.
    pub fn acquire(self) -> Result<LockGuard, AcquireError> {
        let guard = self.engine.call(self.lock.acquire())??;
        Ok(LockGuard::new(guard, self.engine))
    }

    /// Acquires the lock, runs `work` on this thread, and releases the lock afterwards.
    ///
    /// Nobody can end a thread's work from outside: the work is *told* to stop, by the token that
    /// it gets, when the lock is lost or when a quarter of its lifetime is left and no renewal has
    /// succeeded. It has until the deadline to end by itself.
    ///
    /// # Errors
    /// As [`guard::LockBuilder::with_lock`](super::LockBuilder::with_lock); what was stopped has
    /// always a value.
    ///
    /// # Panics
    /// With the work's panic; the lock's release is begun (C16).
    pub fn with_lock<T>(
        self,
        work: impl FnOnce(FencingToken, &CancellationToken) -> T,
    ) -> Result<T, WithLockError<T>> {
        let guard = self.acquire()?;
        let told = guard.danger();
        let value = work(guard.token(), &told);
        let loss = guard.known_loss();
        // A deadline that passed before anybody could tell counts as told.
        let told = loss.is_some() || told.is_cancelled();
        let release = guard.release();
        if told {
            return Err(WithLockError::Stopped { value: Some(value), loss });
        }
        match release {
            Ok(()) => Ok(value),
            Err(ReleaseError::Lost) => Err(WithLockError::Lost { value }),
            Err(ReleaseError::Failed(error)) => Err(WithLockError::Unconfirmed { value, error }),
        }
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.locks.fmt(f)
    }
}

impl fmt::Debug for LockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}
