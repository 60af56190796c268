//! What a command answers: a table for people, or with `--json` what HTTP would answer.

use std::time::Duration;

use dlock_domain::{Applied, LockError, LockInfo, WallTime};
use dlock_http::wire::{self, Asked};
use dlock_ports::Clock as _;

use super::table::Table;
use super::{out, say};
use crate::SystemClock;
use crate::run::exit;

/// An answer, in both forms, and the exit code that goes with it.
pub(crate) struct Answer {
    pub(crate) code: u8,
    /// The body as HTTP answers it.
    pub(crate) json: String,
    pub(crate) table: Table,
}

impl Answer {
    /// Named values, one a row.
    pub(crate) fn pairs<const N: usize>(code: u8, json: String, rows: [(&str, String); N]) -> Self {
        Self { code, json, table: Table::pairs(rows) }
    }

    /// Prints it; answers the exit code.
    pub(crate) fn print(&self, json: bool) -> u8 {
        if json {
            return out::plain(format!("{}\n", self.json).as_bytes(), self.code);
        }
        self.table.print(self.code)
    }
}

/// Prints an answer or a failure: a failure for people on standard error, with `--json` also as
/// the problem that HTTP would answer. `asked`: what kind of call it was.
pub(crate) fn told(outcome: Result<Answer, LockError>, asked: Asked, json: bool) -> u8 {
    let error = match outcome {
        Ok(answer) => return answer.print(json),
        Err(error) => error,
    };
    let code = exit::of_error(&error);
    if json {
        // What it says goes to standard error too, and the code is that of a failure already.
        out::plain(format!("{}\n", wire::problem(&error, asked)).as_bytes(), code);
    }
    let unknown = asked == Asked::Write && error.applied() == Applied::Unknown;
    say(format_args!("{error}{}", if unknown { " (it may have happened)" } else { "" }));
    code
}

/// The head of a table of locks.
pub(crate) const INFO_HEAD: &[&str] =
    &["NAME", "OWNER", "TOKEN", "HELD FOR", "EXPIRES IN", "WAITERS"];

/// A lock as a row of that table.
pub(crate) fn info_row(info: &LockInfo) -> Vec<String> {
    let now = now();
    vec![
        info.key.name().as_str().to_owned(),
        info.owner.as_str().to_owned(),
        info.token.to_string(),
        seconds(now.since(info.acquired_at)),
        seconds(info.server_expiry.since(now)),
        info.waiter_count.to_string(),
    ]
}

/// A duration for people.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

/// The time of day, for display only.
pub(crate) fn now() -> WallTime {
    SystemClock::new().wall()
}
