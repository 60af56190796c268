//! Every kind of failure there is: its name, its status and its title, in one table that answers
//! and the API's description are both made from (C2, C3).

use axum::http::StatusCode;
use dlock_domain::{ErrorKind, Invariant};

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// What follows `urn:dlock:problem:` in the problem's `type`.
    pub(crate) name: &'static str,
    /// The status it is answered with.
    pub(crate) status: StatusCode,
    /// The same in words, whatever the case at hand.
    pub(crate) title: &'static str,
}

const fn kind(status: StatusCode, name: &'static str, title: &'static str) -> Kind {
    Kind { name, status, title }
}

/// Somebody else has the lock.
pub(crate) const NOT_GRANTED: Kind = kind(StatusCode::CONFLICT, "not-granted", "Not granted");
/// A revoke expected another grant.
pub(crate) const TOKEN_MISMATCH: Kind =
    kind(StatusCode::CONFLICT, "token-mismatch", "Another token than expected");
/// A look at a lock that nobody holds.
pub(crate) const NOT_HELD: Kind = kind(StatusCode::NOT_FOUND, "not-held", "Not held");
/// Nothing is there.
pub(crate) const NOT_FOUND: Kind = kind(StatusCode::NOT_FOUND, "not-found", "Not found");
/// A body that is not JSON.
pub(crate) const MALFORMED_BODY: Kind =
    kind(StatusCode::BAD_REQUEST, "malformed-body", "Malformed body");
/// A query string that cannot be decoded.
pub(crate) const MALFORMED_QUERY: Kind =
    kind(StatusCode::BAD_REQUEST, "malformed-query", "Malformed query");
/// A request without exactly one host.
pub(crate) const MALFORMED_HOST: Kind =
    kind(StatusCode::BAD_REQUEST, "malformed-host", "Malformed host");
/// A host that this server does not answer for.
pub(crate) const MISDIRECTED: Kind =
    kind(StatusCode::MISDIRECTED_REQUEST, "misdirected", "Misdirected request");
/// A body of another type, or compressed.
pub(crate) const WRONG_TYPE: Kind =
    kind(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type");
/// A body over the limit.
pub(crate) const TOO_LARGE: Kind =
    kind(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "Body too large");
/// A body that does not come.
pub(crate) const TOO_SLOW: Kind =
    kind(StatusCode::REQUEST_TIMEOUT, "request-timeout", "Request time-out");
/// A route without that method.
pub(crate) const METHOD_NOT_ALLOWED: Kind =
    kind(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed");
/// A mistake of ours.
pub(crate) const INTERNAL: Kind =
    kind(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error");

/// Anything that may pass.
pub(crate) const CONTENTION: Kind = of(ErrorKind::Contention);
/// The store has no leader.
pub(crate) const NOT_LEADER: Kind = of(ErrorKind::NotLeader);
/// This server is stopping.
pub(crate) const DRAINING: Kind = of(ErrorKind::Draining);
/// The grant is not there.
pub(crate) const LOCK_LOST: Kind = of(ErrorKind::LockLost);
/// The session is not there.
pub(crate) const SESSION_EXPIRED: Kind = of(ErrorKind::SessionExpired);
/// A field that is wrong.
pub(crate) const INVALID_ARGUMENT: Kind = of(ErrorKind::InvalidArgument { field: "" });
/// A limit that is reached.
pub(crate) const LIMIT: Kind = of(ErrorKind::Limit { limit: "" });
/// Not allowed.
pub(crate) const DENIED: Kind = of(ErrorKind::Denied);
/// The store cannot do that.
pub(crate) const UNSUPPORTED: Kind = of(ErrorKind::Unsupported);
/// An incident.
pub(crate) const INVARIANT_VIOLATED: Kind = of(ErrorKind::InvariantViolated(Invariant::TokensRise));

/// The kind on the wire of a kind of the domain: the table of C2.
pub(crate) const fn of(kind: ErrorKind) -> Kind {
    let (status, title) = match kind {
        ErrorKind::Contention => (StatusCode::SERVICE_UNAVAILABLE, "Not now"),
        ErrorKind::NotLeader => (StatusCode::SERVICE_UNAVAILABLE, "The store has no leader"),
        ErrorKind::Draining => (StatusCode::SERVICE_UNAVAILABLE, "This server is shutting down"),
        ErrorKind::LockLost => (StatusCode::GONE, "The lock is lost"),
        ErrorKind::SessionExpired => (StatusCode::GONE, "The session has expired"),
        ErrorKind::InvalidArgument { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid argument"),
        ErrorKind::Limit { .. } => (StatusCode::TOO_MANY_REQUESTS, "A limit is reached"),
        ErrorKind::Denied => (StatusCode::FORBIDDEN, "Denied"),
        ErrorKind::Unsupported => (StatusCode::NOT_IMPLEMENTED, "The store cannot do that"),
        ErrorKind::InvariantViolated(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "A promise does not hold")
        }
    };
    Kind { name: kind.name(), status, title }
}
