//! Problem documents, and the errors that they are (C2, C3).

use dlock_domain::{ErrorKind, Invariant, LockError};
use serde::Deserialize;

use crate::{call::Effect, info::InfoBody, intern, text};

const URN: &str = "urn:dlock:problem:";

/// What of a problem document matters here.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    r#type: String,
    status: u16,
    detail: String,
    applied: Option<String>,
    field: Option<String>,
    limit: Option<String>,
    invariant: Option<String>,
    /// Of `not-granted`.
    pub(crate) holder: Option<InfoBody>,
    /// Of `token-mismatch`.
    pub(crate) current_token: Option<u64>,
}

impl Document {
    /// Reads a document of ours that says the same status as its answer.
    pub(crate) fn read(body: &[u8], status: u16) -> Option<Self> {
        let document: Self = serde_json::from_slice(body).ok()?;
        (document.r#type.starts_with(URN) && document.status == status).then_some(document)
    }

    /// Which problem it is.
    pub(crate) fn kind(&self) -> &str {
        self.r#type.strip_prefix(URN).unwrap_or("")
    }

    /// The error that it is. `None` where the problem and its status do not go together, or where
    /// it is no failure of this call: then nobody knows what it means.
    pub(crate) fn error(&self, status: u16, effect: Effect) -> Option<LockError> {
        let kind = self.error_kind(status)?;
        let error = LockError::new(kind, self.words(kind));
        let unknown = match self.applied.as_deref() {
            Some("no") => false,
            Some(_) => true,
            None => error.is_transient(),
        };
        let unknown = unknown && effect == Effect::Write;
        Some(if unknown { error.maybe_applied() } else { error })
    }

    fn error_kind(&self, status: u16) -> Option<ErrorKind> {
        let kind = match (self.kind(), status) {
            ("contention", 503) | ("request-timeout", 408) | ("internal", 500) => {
                ErrorKind::Contention
            }
            ("not-leader", 503) => ErrorKind::NotLeader,
            ("draining", 503) => ErrorKind::Draining,
            ("lock-lost", 410) => ErrorKind::LockLost,
            ("session-expired", 410) => ErrorKind::SessionExpired,
            ("limit", 429) | ("body-too-large", 413) => self.limit(),
            ("denied", 401 | 403) | ("misdirected", 421) => ErrorKind::Denied,
            ("unsupported", 501) | ("not-found", 404) | ("method-not-allowed", 405) => {
                ErrorKind::Unsupported
            }
            ("invariant-violated", 500) => ErrorKind::InvariantViolated(self.invariant()),
            (
                "invalid-argument"
                | "malformed-body"
                | "malformed-query"
                | "malformed-host"
                | "unsupported-media-type",
                400 | 415 | 422,
            ) => self.invalid(),
            // Known, but not with this status, or the answer of another call.
            (
                "contention"
                | "request-timeout"
                | "internal"
                | "not-leader"
                | "draining"
                | "lock-lost"
                | "session-expired"
                | "limit"
                | "body-too-large"
                | "denied"
                | "misdirected"
                | "unsupported"
                | "not-found"
                | "method-not-allowed"
                | "invariant-violated"
                | "invalid-argument"
                | "malformed-body"
                | "malformed-query"
                | "malformed-host"
                | "unsupported-media-type"
                | "not-granted"
                | "not-held"
                | "token-mismatch",
                _,
            ) => return None,
            // A later server's: its status still says what to do. Never a loss, though: a loss
            // that this client cannot name is no certainty.
            (_, 400 | 415 | 422) => self.invalid(),
            (_, 401 | 403) => ErrorKind::Denied,
            (_, 429) => self.limit(),
            (_, 501) => ErrorKind::Unsupported,
            (_, 500 | 502 | 503 | 504) => ErrorKind::Contention,
            _ => return None,
        };
        Some(kind)
    }

    fn invalid(&self) -> ErrorKind {
        ErrorKind::InvalidArgument { field: intern::field(self.field.as_deref().unwrap_or("")) }
    }

    fn limit(&self) -> ErrorKind {
        ErrorKind::Limit { limit: intern::limit(self.limit.as_deref().unwrap_or("")) }
    }

    /// A promise that this client has no name for is still an incident.
    fn invariant(&self) -> Invariant {
        let known = [Invariant::OneGrantPerKey, Invariant::TokensRise, Invariant::RecordsReadable];
        let named = |known: &Invariant| self.invariant.as_deref() == Some(known.id());
        known.into_iter().find(named).unwrap_or(Invariant::RecordsReadable)
    }

    /// The detail, with the name that could not be interned, if there is one.
    fn words(&self, kind: ErrorKind) -> String {
        let (given, kept) = match kind {
            ErrorKind::InvalidArgument { field } => (self.field.as_deref(), field),
            ErrorKind::Limit { limit } => (self.limit.as_deref(), limit),
            ErrorKind::InvariantViolated(invariant) => (self.invariant.as_deref(), invariant.id()),
            _ => (None, ""),
        };
        match given {
            Some(given) if given != kept => text::shown(&format!("{given}: {}", self.detail)),
            _ => text::shown(&self.detail),
        }
    }
}
