//! Stores as configured.

use std::path::Path;

use crate::config::Effective;
use crate::wiring::EmbeddedConfig;

/// The embedded store's configuration, in this directory.
pub(crate) fn embedded(effective: &Effective, directory: &Path) -> EmbeddedConfig {
    EmbeddedConfig {
        max_locks: effective.max_locks,
        max_sessions: effective.max_sessions,
        purge_after: effective.purge_after,
        ..EmbeddedConfig::at(directory)
    }
}
