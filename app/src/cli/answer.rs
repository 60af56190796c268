//! What a command prints: a table for people, or with `--json` what HTTP would answer.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use dlock_domain::{Applied, ErrorKind, LockError, LockInfo, WallTime};
use dlock_ports::Clock as _;
use serde_json::{Value, json};

use super::say;
use crate::SystemClock;
use crate::run::exit;

/// An answer, in both forms, and the exit code that goes with it.
pub(crate) struct Answer {
    pub(crate) code: u8,
    pub(crate) json: Value,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Answer {
    /// Named values, one a row.
    pub(crate) fn pairs<const N: usize>(code: u8, json: Value, rows: [(&str, String); N]) -> Self {
        let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        Self { code, json, rows }
    }

    /// Prints it; a closed pipe is no error.
    pub(crate) fn print(&self, json: bool) -> u8 {
        let mut out = std::io::stdout().lock();
        if json {
            let _ = writeln!(out, "{}", self.json);
            return self.code;
        }
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            if writeln!(out, "{}", cells.join("  ").trim_end()).is_err() {
                break;
            }
        }
        self.code
    }
}

/// A failure: for people on standard error, with `--json` a problem on standard output.
pub(crate) fn fail(error: &LockError, json: bool) -> u8 {
    if json {
        let mut problem = json!({
            "type": format!("urn:dlock:problem:{}", error.kind().name()),
            "detail": error.detail(),
            "retryable": error.is_transient(),
            "applied": match error.applied() { Applied::No => "no", Applied::Unknown => "unknown" },
        });
        let place = match error.kind() {
            ErrorKind::InvalidArgument { field } => Some(("field", field)),
            ErrorKind::Limit { limit } => Some(("limit", limit)),
            ErrorKind::InvariantViolated(invariant) => Some(("invariant", invariant.id())),
            _ => None,
        };
        if let Some((name, value)) = place {
            problem[name] = value.into();
        }
        let _ = writeln!(std::io::stdout().lock(), "{problem}");
    }
    let unknown = if error.applied() == Applied::Unknown { " (it may have happened)" } else { "" };
    say(format_args!("{error}{unknown}"));
    exit::of_error(error)
}

/// A lock as HTTP shows it.
pub(crate) fn info_json(info: &LockInfo) -> Value {
    let now = now();
    json!({
        "name": info.key.name().as_str(),
        "namespace": info.key.namespace().as_str(),
        "owner": info.owner.as_str(),
        "fencing_token": info.token.get(),
        "held_for_ms": millis(now.since(info.acquired_at)),
        "expires_in_ms": millis(info.server_expiry.since(now)),
        "waiter_count": info.waiter_count,
    })
}

/// The head of a table of locks.
pub(crate) fn info_head() -> Vec<String> {
    ["NAME", "OWNER", "TOKEN", "HELD FOR", "EXPIRES IN", "WAITERS"].map(str::to_owned).to_vec()
}

/// A lock as a row of that table.
pub(crate) fn info_row(info: &LockInfo) -> Vec<String> {
    let now = now();
    vec![
        shown(info.key.name().as_str()),
        shown(info.owner.as_str()),
        info.token.to_string(),
        seconds(now.since(info.acquired_at)),
        seconds(info.server_expiry.since(now)),
        info.waiter_count.to_string(),
    ]
}

/// Milliseconds, as HTTP counts.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A duration for people.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

/// Names hold no control characters, but some that turn a terminal's text around; where people
/// look those are escaped, and elsewhere the bytes pass as they are.
fn shown(text: &str) -> String {
    if !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    text.chars()
        .map(|c| if turns(c) { c.escape_unicode().to_string() } else { c.to_string() })
        .collect()
}

fn now() -> WallTime {
    SystemClock::new().wall()
}
