//! Building stores by name: the one place that knows which stores there are.

use std::sync::Arc;

use dlock_memory::MemoryStore;
use dlock_ports::{Backend, Clock, Entropy};

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
