//! The configuration, as every command loads it first.

use std::path::PathBuf;

use super::args::ConfigFile;
use super::say;
use crate::config::{ConfigError, Effective, Settings, Sources};
use crate::run::exit;

/// Settings, and the same as types.
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    pub(crate) effective: Effective,
}

/// The flags that are keys too: name of the key, flag, and what was given.
pub(crate) type Flags<'a> = &'a [(&'static str, &'static str, &'a Option<String>)];

/// Loads it; everything that is wrong is said, and the exit code is that of bad usage.
pub(crate) fn load(file: &ConfigFile, flags: Flags<'_>) -> Result<Loaded, u8> {
    try_load(file.config.clone(), flags).map_err(|errors| {
        for error in errors {
            say(format_args!("{error}"));
        }
        exit::USAGE
    })
}

fn try_load(file: Option<PathBuf>, flags: Flags<'_>) -> Result<Loaded, Vec<ConfigError>> {
    let given = flags
        .iter()
        .filter_map(|(key, flag, value)| value.as_ref().map(|value| (*key, *flag, value.clone())))
        .collect();
    let settings = Settings::load(&Sources::of_this_process(file, given))?;
    let effective = Effective::of(&settings).map_err(|error| vec![error])?;
    Ok(Loaded { settings, effective })
}
