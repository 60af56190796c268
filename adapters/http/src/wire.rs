//! The bodies of answers as text, for whoever else prints what this server would answer: the
//! command line's `--json` (C3). One definition of each: the handlers serialise the same types.
//!
//! Nothing here fails or waits. A duration is what a holder may still believe in, counted from the
//! moment the reader chooses as HTTP's counts from the arrival of a request.

use core::time::Duration;

use dlock_domain::{
    LockError, LockHandle, LockInfo, LockName, LockOutcome, Namespace, Result, Session, WallTime,
};
use dlock_ports::{Kept, Page, Raised, Released};
use serde::Serialize;

use crate::{
    cursor,
    floor::RaisedBody,
    health::ReadyBody,
    info::{InfoBody, millis},
    locks::{grant::GrantBody, list, list::PageBody, release::ReleasedBody, revoke::RevokedBody},
    problem::Problem,
    sessions,
};

/// What kind of call failed: it decides what its problem says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// One that changes nothing: `applied` means nothing.
    Read,
    /// One that may have had its effect.
    Write,
    /// Whether the server is ready: every reason against it is 503.
    Ready,
}

/// A grant: the answer of acquire and renew.
#[must_use]
pub fn grant(handle: &LockHandle, valid: Duration) -> String {
    text(&GrantBody::new(handle, millis(valid)))
}

/// A session that was opened.
#[must_use]
pub fn opened(session: &Session, valid: Duration) -> String {
    text(&sessions::Opened::new(session, millis(valid)))
}

/// A session that was kept.
#[must_use]
pub fn kept(kept: &Kept, valid: Duration) -> String {
    text(&sessions::Kept::new(kept, millis(valid)))
}

/// A session that was closed, or was gone.
#[must_use]
pub fn closed(closed: bool) -> String {
    text(&sessions::Closed { closed })
}

/// What a release found.
#[must_use]
pub fn released(released: &Released) -> String {
    text(&ReleasedBody::new(released))
}

/// A lock as others see it at this time.
#[must_use]
pub fn info(info: &LockInfo, now: WallTime) -> String {
    text(&InfoBody::new(info, now))
}

/// Locks as others see them at this time, and where to go on.
#[must_use]
pub fn page(page: &Page, now: WallTime) -> String {
    text(&PageBody::new(page, now))
}

/// What a revoke did; a mismatch is the problem `token-mismatch`.
#[must_use]
pub fn revoked(outcome: LockOutcome) -> String {
    RevokedBody::new(outcome).map_or_else(|problem| text(&problem), |body| text(&body))
}

/// What raising a floor did.
#[must_use]
pub fn raised(namespace: &Namespace, raised: &Raised) -> String {
    text(&RaisedBody::new(namespace, raised))
}

/// The store answers.
#[must_use]
pub fn ready() -> String {
    text(&ReadyBody { ready: true })
}

/// The problem `not-granted`, with who holds the lock.
#[must_use]
pub fn not_granted(holder: Option<&LockInfo>, now: WallTime) -> String {
    text(&Problem::not_granted(holder.map(|info| InfoBody::new(info, now))))
}

/// The problem `not-held`.
#[must_use]
pub fn not_held() -> String {
    text(&Problem::not_held())
}

/// The problem that an error is.
#[must_use]
pub fn problem(error: &LockError, asked: Asked) -> String {
    let problem = Problem::of_error(error);
    text(&match asked {
        Asked::Read => problem.of_read(),
        Asked::Write => problem,
        Asked::Ready => problem.not_ready(),
    })
}

/// Reads the `next_cursor` of a page.
///
/// # Errors
/// `InvalidArgument` naming `cursor`.
pub fn read_cursor(text: &str) -> Result<LockName> {
    cursor::read(text)
}

/// The cursor that goes on after this lock.
#[must_use]
pub fn write_cursor(after: &LockName) -> String {
    cursor::write(after)
}

/// Reads the beginning of names.
///
/// # Errors
/// `InvalidArgument` naming `prefix`: no name begins so (C31).
pub fn read_prefix(text: &str) -> Result<&str> {
    list::prefix(text)
}

/// Our own bodies are texts and numbers, which always serialise.
fn text(body: &impl Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}
