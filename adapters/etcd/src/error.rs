//! The one place where the driver's errors become ours (INV-07, traps 10 and 14).

use std::io;

use dlock_domain::{ErrorKind, LockError};
use etcd_client::Error;

/// Why a call of etcd's failed, as far as this crate cares.
#[derive(Clone, Debug)]
pub(crate) enum Fail {
    /// The lease is not there: definite, nothing was done.
    NoLease,
    /// A lease of this id is there already: definite, nothing was done.
    LeaseExists,
    /// Nothing was sent, so nothing can have been done: another member may be asked.
    Unsent(LockError),
    /// Everything else, as the callers of the store see it.
    Other(LockError),
}

impl Fail {
    /// As an error of ours, where a missing or second lease is nothing in particular.
    pub(crate) fn into_error(self) -> LockError {
        match self {
            Self::NoLease => LockError::session_expired(),
            Self::LeaseExists => LockError::contention("the id drawn for the session is taken"),
            Self::Unsent(error) | Self::Other(error) => error,
        }
    }
}

impl From<LockError> for Fail {
    fn from(error: LockError) -> Self {
        Self::Other(error)
    }
}

impl From<Fail> for LockError {
    fn from(fail: Fail) -> Self {
        fail.into_error()
    }
}

/// Whether a call whose outcome nobody knows may have done what matters. A keep-alive counts among the
/// reads: it may be made again anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Writes,
}

/// Maps an error of the driver's.
pub(crate) fn map(error: Error, effect: Effect) -> Fail {
    match error {
        Error::GRpcStatus(status) => {
            let refused = is_refused(&status);
            let message = status.message().to_owned();
            // By name, so that the driver's own crates stay the driver's.
            let code = format!("{:?}", status.code());
            classify(&code, &message, refused, effect, Error::GRpcStatus(status))
        }
        Error::LeaseKeepAliveError(text) if text == "lease not found" => Fail::NoLease,
        Error::InvalidArgs(_)
        | Error::InvalidUri(_)
        | Error::EndpointError(_)
        | Error::InvalidMetadataValue(_)
        | Error::Utf8Error(_) => definite(ErrorKind::Contention, error.to_string(), error),
        other => unknown(ErrorKind::Contention, other.to_string(), effect, other),
    }
}

fn classify(code: &str, message: &str, refused: bool, effect: Effect, source: Error) -> Fail {
    let says = |words: &str| message.contains(words);
    let text = || format!("etcd says: {message}");
    if says("requested lease not found") {
        return Fail::NoLease;
    }
    if says("lease already exists") {
        return Fail::LeaseExists;
    }
    if says("no leader") || says("not leader") || says("leader changed") || says("not the leader") {
        return unknown(ErrorKind::NotLeader, text(), effect, source);
    }
    match code {
        _ if denies(code, message) => definite(ErrorKind::Denied, text(), source),
        _ if says("too many requests")
            || says("has been compacted")
            || says("duplicate key given")
            || says("too many operations") =>
        {
            definite(ErrorKind::Contention, text(), source)
        }
        _ if refused => {
            let detail = format!("a member of etcd cannot be reached: {message}");
            Fail::Unsent(LockError::contention(detail).caused_by(source))
        }
        // "database space exceeded" is among them: all such transactions had been applied (trap 10).
        _ => unknown(ErrorKind::Contention, text(), effect, source),
    }
}

/// Whether a user is not let in, or not allowed what was asked for.
fn denies(code: &str, message: &str) -> bool {
    let words = ["permission denied", "authentication failed", "user name is empty"];
    matches!(code, "Unauthenticated" | "PermissionDenied")
        || words.iter().any(|words| message.contains(words))
}

/// Whether a client could not be made because its user is not let in.
pub(crate) fn is_denial(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => denies(&format!("{:?}", status.code()), status.message()),
        _ => false,
    }
}

/// Whether no connection was made at all, so that nothing can have been sent.
fn is_refused(status: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
            );
        }
        // The connector's own words, where what lies below it is no error of the system's.
        let text = error.to_string();
        if text.starts_with("tcp connect error") || text.starts_with("tls handshake") {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether a client could not be made because its member cannot be reached, not because of what was
/// said of it.
pub(crate) fn is_transport(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => {
            let code = format!("{:?}", status.code());
            matches!(code.as_str(), "Unavailable" | "DeadlineExceeded" | "Unknown" | "Cancelled")
                && !status.message().contains("authentication failed")
        }
        Error::TransportError(_) | Error::IoError(_) => true,
        _ => false,
    }
}

fn definite(kind: ErrorKind, detail: String, source: Error) -> Fail {
    Fail::Other(LockError::new(kind, detail).caused_by(source))
}

fn unknown(kind: ErrorKind, detail: String, effect: Effect, source: Error) -> Fail {
    Fail::Other(with(LockError::new(kind, detail).caused_by(source), effect))
}

/// An error after which a write may have been done.
pub(crate) fn with(error: LockError, effect: Effect) -> LockError {
    match effect {
        Effect::Reads => error,
        Effect::Writes => error.maybe_applied(),
    }
}

/// An answer that lacks what every answer has.
pub(crate) fn malformed(what: &'static str, effect: Effect) -> LockError {
    with(LockError::contention(format!("etcd's answer lacks {what}")), effect)
}

#[cfg(test)]
mod tests {
    use dlock_domain::Applied;

    use super::*;

    fn of(code: &str, message: &str, effect: Effect) -> Fail {
        classify(code, message, false, effect, Error::Internal("test".into()))
    }

    fn kind_of(code: &str, message: &str) -> (ErrorKind, Applied) {
        let error = of(code, message, Effect::Writes).into_error();
        (error.kind(), error.applied())
    }

    #[test]
    fn trap_14_definite_and_unknown_are_kept_apart() {
        let table = [
            (
                "Unavailable",
                "etcdserver: request timed out",
                ErrorKind::Contention,
                Applied::Unknown,
            ),
            ("Unavailable", "etcdserver: leader changed", ErrorKind::NotLeader, Applied::Unknown),
            ("Unavailable", "etcdserver: no leader", ErrorKind::NotLeader, Applied::Unknown),
            (
                "FailedPrecondition",
                "etcdserver: not leader",
                ErrorKind::NotLeader,
                Applied::Unknown,
            ),
            (
                "DeadlineExceeded",
                "context deadline exceeded",
                ErrorKind::Contention,
                Applied::Unknown,
            ),
            ("Cancelled", "transport: reset", ErrorKind::Contention, Applied::Unknown),
            (
                "ResourceExhausted",
                "etcdserver: mvcc: database space exceeded",
                ErrorKind::Contention,
                Applied::Unknown,
            ),
            (
                "ResourceExhausted",
                "etcdserver: too many requests",
                ErrorKind::Contention,
                Applied::No,
            ),
            (
                "OutOfRange",
                "etcdserver: mvcc: required revision has been compacted",
                ErrorKind::Contention,
                Applied::No,
            ),
            (
                "InvalidArgument",
                "etcdserver: duplicate key given in txn request",
                ErrorKind::Contention,
                Applied::No,
            ),
            ("PermissionDenied", "etcdserver: permission denied", ErrorKind::Denied, Applied::No),
            ("InvalidArgument", "etcdserver: user name is empty", ErrorKind::Denied, Applied::No),
            ("Unauthenticated", "etcdserver: invalid auth token", ErrorKind::Denied, Applied::No),
        ];
        for (code, message, kind, applied) in table {
            assert_eq!(kind_of(code, message), (kind, applied), "{message}");
        }
        let read = of("Unavailable", "etcdserver: request timed out", Effect::Reads).into_error();
        assert_eq!(read.applied(), Applied::No, "a read changes nothing");
    }

    #[test]
    fn inv07_only_the_store_says_that_a_lease_is_gone() {
        assert!(matches!(
            of("NotFound", "etcdserver: requested lease not found", Effect::Writes),
            Fail::NoLease
        ));
        assert!(matches!(
            of("FailedPrecondition", "etcdserver: lease already exists", Effect::Writes),
            Fail::LeaseExists
        ));
        for message in ["", "lease", "not found", "transport error"] {
            assert!(matches!(of("Unknown", message, Effect::Writes), Fail::Other(_)), "{message}");
        }
    }
}
