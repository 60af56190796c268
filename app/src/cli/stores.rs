//! Stores as configured, and what is to be done by hand in one.

use std::path::Path;

use super::{loaded, out, say};
use crate::config::Effective;
use crate::run::exit;
use crate::wiring::{EmbeddedConfig, StoreCommand};

/// The embedded store's configuration, in this directory.
pub(crate) fn embedded(effective: &Effective, directory: &Path) -> EmbeddedConfig {
    EmbeddedConfig {
        max_locks: effective.max_locks,
        max_sessions: effective.max_sessions,
        purge_after: effective.purge_after,
        ..EmbeddedConfig::at(directory)
    }
}

/// `dlock postgres schema`: the SQL that makes the tables of the store.
pub(crate) fn main(command: &StoreCommand) -> u8 {
    let flags: &[_] = &[("postgres.schema", "--schema", command.schema())];
    let loaded = match loaded::load(command.file(), flags) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    match command.sql(&loaded.effective.postgres) {
        Ok(sql) => out::plain(sql.as_bytes(), 0),
        Err(problem) => {
            say(format_args!("{problem}"));
            exit::USAGE
        }
    }
}
