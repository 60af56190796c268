//! Log lines, on standard error: for people on a terminal, JSON elsewhere (C4).

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts logging; at the level in `DLOCK_LOG_LEVEL`, else `default`.
pub(crate) fn start(default: &str) {
    let level = std::env::var("DLOCK_LOG_LEVEL").unwrap_or_else(|_| default.to_owned());
    let filter = EnvFilter::try_new(&level).unwrap_or_else(|error| {
        super::say(format_args!("DLOCK_LOG_LEVEL is not understood ({error}): using {default}"));
        EnvFilter::new(default)
    });
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Starting twice happens in tests only, and then the first stays.
    let _ = if std::io::stderr().is_terminal() {
        lines.try_init()
    } else {
        lines.json().flatten_event(true).try_init()
    };
}
