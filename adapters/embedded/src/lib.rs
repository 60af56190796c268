//! The embedded store: one SQLite file, many processes of one machine (C1).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `config`, `error` | what it can be told; why it could not be opened, and diesel's errors as ours |
//! | `connection`, `file_system`, `clock_domain` | opening: refusals, schema, this boot's clock |
//! | `same_file` | whether the file is still the one that was opened |
//! | `worker` | a thread that groups concurrent calls into one transaction and answers after the commit |
//! | `tx`, `schema`, `codec` | one transaction's rows and counters |
//! | `store`, `session`, `floor` | who may do what: the ports' methods |
//! | `reads`, `directory`, `wait` | looking, listing, being told of releases |
//!
//! Durability: write-ahead log with `synchronous=FULL`; what was answered survives `kill -9` and
//! the machine's sudden death. Tokens come from one counter in the file. Expiry is on the boot
//! clock: a wall clock may jump as it likes, and a reboot frees nothing early.

mod clock_domain;
mod codec;
mod config;
mod connection;
mod directory;
mod error;
mod file_system;
mod floor;
mod reads;
mod same_file;
mod schema;
mod session;
mod store;
mod tx;
mod wait;
mod worker;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dlock_domain::LockInfo;
use dlock_ports::{Backend, Clock, Entropy};

pub use clock_domain::ClockDomain;
pub use config::{Durability, EmbeddedConfig};
pub use error::OpenError;

use clock_domain::InUse;
use same_file::SameFile;
use tx::Limits;
use wait::Hub;
use worker::{Counters, Mode, Setup, Worker};

/// An open store. Cheap to clone; the file is closed when the last clone and the last part of its
/// [`Backend`] are dropped.
#[derive(Clone)]
pub struct EmbeddedStore {
    inner: Arc<Inner>,
}

/// The fields are dropped in this order: the threads end before the share in the file's use.
pub(crate) struct Inner {
    writer: Worker,
    reader: Worker,
    hub: Arc<Hub>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    _in_use: InUse,
}

impl EmbeddedStore {
    /// Opens the store in the configured directory, making both if they are absent. Blocks for a
    /// few milliseconds, or up to the busy time-out while other processes hold the file.
    ///
    /// # Errors
    /// [`OpenError`]: each says what to do.
    pub fn open(
        config: EmbeddedConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, OpenError> {
        let domain = ClockDomain::current()
            .map_err(|source| OpenError::io("/proc/sys/kernel/random/boot_id".as_ref(), source))?;
        Self::open_on_clock(config, &domain, clock, entropy)
    }

    /// [`open`](Self::open) on a clock whose identity the caller knows: for tests of reboots and
    /// foreign clocks.
    ///
    /// # Errors
    /// As `open`.
    pub fn open_on_clock(
        config: EmbeddedConfig,
        domain: &ClockDomain,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, OpenError> {
        let (in_use, file) = connection::prepare(&config, domain, clock.now())?;
        let hub = Arc::new(Hub::default());
        let limits = Limits {
            sessions: config.max_sessions,
            locks: config.max_locks,
            purge_after: config.purge_after,
        };
        let counters = Arc::new(Counters::default());
        let worker = |name: &str, mode: Mode, counters: &Arc<Counters>| {
            let setup = Setup {
                counters: Arc::clone(counters),
                mode,
                connection: connection::connect(&file, &config)?,
                clock: Arc::clone(&clock),
                limits,
                hub: Arc::clone(&hub),
                poll_interval: config.poll_interval,
                file: SameFile::of(&file).map_err(|source| OpenError::io(&file, source))?,
                quiet_until: clock.now(),
            };
            Worker::start(name, setup).map_err(|source| OpenError::io(&file, source))
        };
        let (writer, reader) = (
            worker("writer", Mode::Write, &counters)?,
            worker("reader", Mode::Read, &Arc::default())?,
        );
        let inner = Inner { writer, reader, hub, counters, clock, entropy, _in_use: in_use };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// How many transactions the writer has committed in this process, and how many calls they
    /// served: their ratio is how well grouping works.
    #[must_use]
    pub fn grouping(&self) -> Grouping {
        let counters = &self.inner.counters;
        Grouping {
            commits: counters.commits.load(Ordering::Relaxed),
            operations: counters.operations.load(Ordering::Relaxed),
        }
    }

    /// What the store offers: everything.
    #[must_use]
    pub fn backend(&self) -> Backend {
        Backend {
            locks: Arc::clone(&self.inner) as _,
            sessions: Arc::clone(&self.inner) as _,
            waiter: Some(Arc::clone(&self.inner) as _),
            directory: Some(Arc::clone(&self.inner) as _),
            floors: Some(Arc::clone(&self.inner) as _),
        }
    }
}

/// What the writer has done so far in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Transactions.
    pub commits: u64,
    /// Calls that they served.
    pub operations: u64,
}

impl Inner {
    fn with_waiters(&self, info: LockInfo) -> LockInfo {
        LockInfo { waiter_count: self.hub.count(&info.key), ..info }
    }
}
