//! Building stores by name: the one place that knows which stores there are.

#[cfg(all(feature = "cli", feature = "etcd"))]
mod etcd;
#[cfg(all(feature = "cli", feature = "postgres"))]
mod postgres;
/// The PostgreSQL store in builds without it: the same names, and nothing behind them.
#[cfg(all(feature = "cli", not(feature = "postgres")))]
#[path = "wiring/no_postgres.rs"]
mod postgres;

use std::sync::Arc;

use dlock_memory::MemoryStore;
use dlock_ports::{Backend, Clock, Entropy};

#[cfg(feature = "etcd")]
pub use dlock_etcd::{ConnectError, EtcdConfig, EtcdStore};
#[cfg(all(feature = "etcd", feature = "cli"))]
pub(crate) use etcd::connect as etcd;

#[cfg(feature = "postgres")]
pub use dlock_postgres::{
    AfterFailover, ConnectError as PostgresConnectError, PostgresConfig, PostgresStore,
};
#[cfg(feature = "cli")]
pub(crate) use postgres::{
    KEYS as POSTGRES_KEYS, StoreCommand, check_schema, check_url, connect as postgres,
};

#[cfg(feature = "embedded")]
pub use dlock_embedded::{EmbeddedConfig, EmbeddedStore, OpenError};

/// The in-memory reference store: everything is gone with the process.
#[must_use]
pub fn memory(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Backend {
    MemoryStore::new(clock, entropy).backend()
}

/// The embedded store: one file, every process of this machine.
///
/// # Errors
/// What is wrong with the file or its place, and what to do.
#[cfg(feature = "embedded")]
pub fn embedded(
    config: EmbeddedConfig,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Backend, OpenError> {
    Ok(EmbeddedStore::open(config, clock, entropy)?.backend())
}

/// The names of the stores that a server of this build can keep locks in.
#[cfg(feature = "cli")]
pub(crate) const BACKENDS: &[&str] = match (cfg!(feature = "etcd"), cfg!(feature = "postgres")) {
    (true, true) => &["embedded", "etcd", "memory", "postgres"],
    (true, false) => &["embedded", "etcd", "memory"],
    (false, true) => &["embedded", "memory", "postgres"],
    (false, false) => &["embedded", "memory"],
};

/// What to say to whoever asks for a store that there is, and not in this build.
#[cfg(feature = "cli")]
pub(crate) fn left_out(store: &str) -> Option<String> {
    let left_out = ["etcd", "postgres"].contains(&store) && !BACKENDS.contains(&store);
    left_out.then(|| {
        format!("this build of dlock has no {store} store: build it with --features {store}")
    })
}

/// The keys of the etcd store, in this build.
#[cfg(all(feature = "cli", feature = "etcd"))]
pub(crate) static ETCD_KEYS: &[crate::config::Key] = crate::config::etcd::KEYS;
/// The keys of the etcd store, in this build.
#[cfg(all(feature = "cli", not(feature = "etcd")))]
pub(crate) static ETCD_KEYS: &[crate::config::Key] = &[];

/// The etcd store, in builds that have it.
#[cfg(all(feature = "cli", not(feature = "etcd")))]
#[expect(clippy::unused_async, reason = "as where there is one")]
pub(crate) async fn etcd(
    _place: &crate::config::etcd::EtcdPlace,
    _clock: Arc<dyn Clock>,
    _entropy: Arc<dyn Entropy>,
) -> Result<Backend, (u8, String)> {
    let message = "this build of dlock has no etcd store: build it with --features etcd";
    Err((crate::run::exit::UNREACHABLE, message.to_owned()))
}
