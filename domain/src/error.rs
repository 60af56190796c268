//! The one closed error type.

use core::fmt;
use std::borrow::Cow;
use std::error::Error;
use std::sync::Arc;

use crate::Invariant;

/// A result whose error is a [`LockError`].
pub type Result<T> = core::result::Result<T, LockError>;

/// What kind of failure it was; each kind says what the caller does next (C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Anything that may pass: unavailable, deadline exceeded, pool or quota exhausted. Repeat.
    Contention,
    /// The store has no leader, or this was not it. Repeat.
    NotLeader,
    /// This server is shutting down. Ask another.
    Draining,
    /// The store answered, and the grant is not there. Stop working.
    LockLost,
    /// The session is not there, and nor is anything it held. Open another.
    SessionExpired,
    /// The request is wrong; the field says where. Mend it.
    InvalidArgument {
        /// The field as its user knows it.
        field: &'static str,
    },
    /// A named limit is reached. Come back later.
    Limit {
        /// The limit's configuration key.
        limit: &'static str,
    },
    /// Not allowed.
    Denied,
    /// The store lacks the capability.
    Unsupported,
    /// A promise does not hold. An incident: tell an operator.
    InvariantViolated(Invariant),
}

/// Whether repeating the call can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It may pass by itself.
    Transient,
    /// It will not.
    Terminal,
}

/// Whether a failed write can have taken effect (INV-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It had no effect and never will.
    No,
    /// Nobody knows: it may have, or still may.
    Unknown,
}

/// Why a call failed.
///
/// Cheap to clone, so that one failed batch can answer many callers. `Display` leaves the source
/// out; walk [`source`](Error::source) for it.
#[derive(Clone)]
pub struct LockError(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    applied: Applied,
    detail: Cow<'static, str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl LockError {
    /// An error that had no effect.
    pub fn new(kind: ErrorKind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Arc::new(Inner { kind, applied: Applied::No, detail: detail.into(), source: None }))
    }

    /// Something that may pass.
    pub fn contention(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Contention, detail)
    }

    /// A grant that the store says is not there.
    pub fn lost(detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::LockLost, detail)
    }

    /// A session that the store says is not there.
    #[must_use]
    pub fn session_expired() -> Self {
        Self::new(ErrorKind::SessionExpired, "the session is not there")
    }

    /// A request that is wrong in this field.
    pub fn invalid(field: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvalidArgument { field }, detail)
    }

    /// A limit that is reached.
    pub fn limit(limit: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::Limit { limit }, detail)
    }

    /// A promise that does not hold.
    pub fn incident(invariant: Invariant, detail: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorKind::InvariantViolated(invariant), detail)
    }

    /// The same error, of a write that may have taken effect.
    #[must_use]
    pub fn maybe_applied(mut self) -> Self {
        Arc::make_mut(&mut self.0).applied = Applied::Unknown;
        self
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.0).source = Some(Arc::new(source));
        self
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether repeating can help.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self.0.kind {
            ErrorKind::Contention | ErrorKind::NotLeader | ErrorKind::Draining => {
                Disposition::Transient
            }
            ErrorKind::LockLost
            | ErrorKind::SessionExpired
            | ErrorKind::InvalidArgument { .. }
            | ErrorKind::Limit { .. }
            | ErrorKind::Denied
            | ErrorKind::Unsupported
            | ErrorKind::InvariantViolated(_) => Disposition::Terminal,
        }
    }

    /// Whether repeating can help, as a question.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.disposition() == Disposition::Transient
    }

    /// For writes: whether it can have taken effect.
    #[must_use]
    pub fn applied(&self) -> Applied {
        self.0.applied
    }

    /// In plain words, for people.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The field that is wrong, of an `InvalidArgument`.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self.0.kind {
            ErrorKind::InvalidArgument { field } => Some(field),
            _ => None,
        }
    }
}

impl ErrorKind {
    /// The kind's name in logs and problem documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contention => "contention",
            Self::NotLeader => "not-leader",
            Self::Draining => "draining",
            Self::LockLost => "lock-lost",
            Self::SessionExpired => "session-expired",
            Self::InvalidArgument { .. } => "invalid-argument",
            Self::Limit { .. } => "limit",
            Self::Denied => "denied",
            Self::Unsupported => "unsupported",
            Self::InvariantViolated(_) => "invariant-violated",
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind.name())?;
        match self.0.kind {
            ErrorKind::InvalidArgument { field } => write!(f, " ({field})")?,
            ErrorKind::Limit { limit } => write!(f, " ({limit})")?,
            ErrorKind::InvariantViolated(invariant) => write!(f, " ({invariant})")?,
            _ => {}
        }
        write!(f, ": {}", self.0.detail)
    }
}

impl fmt::Debug for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockError")
            .field("kind", &self.0.kind)
            .field("applied", &self.0.applied)
            .field("detail", &self.0.detail)
            .field("source", &self.0.source)
            .finish()
    }
}

impl Error for LockError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv07_only_what_may_pass_is_transient() {
        let all = [
            (ErrorKind::Contention, true),
            (ErrorKind::NotLeader, true),
            (ErrorKind::Draining, true),
            (ErrorKind::LockLost, false),
            (ErrorKind::SessionExpired, false),
            (ErrorKind::InvalidArgument { field: "name" }, false),
            (ErrorKind::Limit { limit: "lock.max_waiters" }, false),
            (ErrorKind::Denied, false),
            (ErrorKind::Unsupported, false),
            (ErrorKind::InvariantViolated(Invariant::TokensRise), false),
        ];
        for (kind, transient) in all {
            assert_eq!(LockError::new(kind, "x").is_transient(), transient, "{kind:?}");
        }
    }

    #[test]
    fn display_names_the_place_and_leaves_the_source_out() {
        let source = std::io::Error::other("disk on fire");
        let error = LockError::invalid("ttl_ms", "too long").caused_by(source).maybe_applied();
        assert_eq!(error.to_string(), "invalid-argument (ttl_ms): too long");
        assert_eq!(error.applied(), Applied::Unknown);
        assert_eq!(error.source().unwrap().to_string(), "disk on fire");
        assert_eq!(error.clone().field(), Some("ttl_ms"));
    }
}
