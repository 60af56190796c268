//! Log lines, on standard error: for people on a terminal, JSON elsewhere (C4).

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::loaded::Loaded;
use crate::config::{LogFormat, Origin};

/// Starts logging as configured; `quiet` is the level of commands whose own words matter more, where
/// nobody says.
pub(crate) fn start(loaded: &Loaded, quiet: Option<&str>) {
    let by_default =
        loaded.settings.get("log.level").is_none_or(|level| level.origin == Origin::Default);
    let level = quiet.filter(|_| by_default).unwrap_or(&loaded.effective.log_level);
    let filter = EnvFilter::try_new(level).unwrap_or_else(|error| {
        super::say(format_args!("log.level is not understood ({error}): using info"));
        EnvFilter::new("info")
    });
    let text = match loaded.effective.log_format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Json => false,
        LogFormat::Text => true,
    };
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Starting twice happens in tests only, and then the first stays.
    let _ = if text { lines.try_init() } else { lines.json().flatten_event(true).try_init() };
}
