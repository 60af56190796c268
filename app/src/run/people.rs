//! Messages to people, on standard error. What users, servers and files bring into them is escaped
//! as [`shown`] says.

use std::{
    fmt,
    io::{self, Write},
};

use dlock_domain::{LockError, LockInfo, WallTime, is_printable};

/// Says one line; further ones of a longer message are set in. Nobody listening is no reason to
/// stop.
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let message = message.to_string();
    let lines: Vec<_> = message.lines().map(shown).collect();
    drop(writeln!(io::stderr().lock(), "dlock: {}", lines.join("\n  ")));
}

/// Text as it may go to a terminal: what would move the cursor, hide text or turn it around is
/// escaped (C33).
pub(crate) fn shown(text: &str) -> String {
    escape(text, is_printable)
}

/// Text as it may go anywhere else: control characters are escaped, names stay themselves.
pub(crate) fn escaped(text: &str) -> String {
    escape(text, |c| !c.is_control())
}

fn escape(text: &str, may_pass: fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if may_pass(c) {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_unicode());
        }
    }
    escaped
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c33_what_is_shown_moves_no_cursor_and_hides_nothing() {
        let hostile = "\u{1b}[31m\r\u{9b}2J a\u{202e}b\u{200b}\u{2028}é";
        let shown = shown(hostile);
        assert!(shown.chars().all(is_printable), "{shown:?}");
        assert!(shown.starts_with("\\u{1b}[31m\\u{d}") && shown.ends_with('é'), "{shown}");
        assert_eq!(escaped("a\u{202e}\u{7f}"), "a\u{202e}\\u{7f}");
    }
}
