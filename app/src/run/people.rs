//! Messages to people, on standard error.

use std::{
    fmt,
    io::{self, Write},
};

use dlock_domain::{LockError, LockInfo, WallTime};

/// Says one line. Nobody listening is no reason to stop.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    drop(writeln!(io::stderr().lock(), "dlock: {message}"));
}

/// Says what went wrong, and what caused it.
pub(super) fn say_error(what: &str, error: &LockError) {
    let mut text = format!("{what}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    say(format_args!("{text}"));
}

/// Who holds a lock, in one line.
pub(super) fn holder(name: &str, holder: Option<&LockInfo>, now: WallTime) -> String {
    match holder {
        None => format!("{name:?} is held by somebody else"),
        Some(info) => format!(
            "{name:?} is held by {} (token {}, for {} s)",
            info.owner,
            info.token,
            now.since(info.acquired_at).as_secs()
        ),
    }
}
