//! What calls and waits came to, in the words of the label `outcome` (C4), told from their results
//! alone.
//!
//! Each set is closed. A result that a set has no word for is not timed: a renewal or a revocation
//! that was refused as wrong, or that met an incident (counted as one). A call that was dropped
//! before it answered has no result, and is not timed either.

use dlock_domain::{ErrorKind, LockHandle, LockOutcome, Result};
use dlock_ports::{Acquired, Released};

/// What an acquire came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireOutcome {
    /// The lock is the caller's.
    Granted,
    /// Somebody else has it, and the call was not to wait.
    Held,
    /// Somebody else had it for as long as the call would wait.
    Timeout,
    /// Something that may pass; this server draining included.
    Transient,
    /// The session is not there.
    SessionExpired,
    /// The request was wrong.
    Invalid,
    /// Not allowed.
    Denied,
    /// A limit was reached.
    Limit,
    /// A promise was found broken.
    Incident,
}

impl AcquireOutcome {
    /// Every word.
    pub const WORDS: &'static [&'static str] = &[
        Self::Granted.word(),
        Self::Held.word(),
        Self::Timeout.word(),
        Self::Transient.word(),
        Self::SessionExpired.word(),
        Self::Invalid.word(),
        Self::Denied.word(),
        Self::Limit.word(),
        Self::Incident.word(),
    ];

    /// The label's value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Held => "held",
            Self::Timeout => "timeout",
            Self::Transient => "transient",
            Self::SessionExpired => "session_expired",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Limit => "limit",
            Self::Incident => "incident",
        }
    }

    /// Tells it from the result of a call that `waits`, or not; `None` for errors that no acquire
    /// answers.
    #[must_use]
    pub fn of(result: &Result<Acquired>, waits: bool) -> Option<Self> {
        let error = match result {
            Ok(Acquired::Granted(_)) => return Some(Self::Granted),
            Ok(Acquired::NotGranted { .. }) if waits => return Some(Self::Timeout),
            Ok(Acquired::NotGranted { .. }) => return Some(Self::Held),
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::Contention | ErrorKind::NotLeader | ErrorKind::Draining => {
                Some(Self::Transient)
            }
            ErrorKind::SessionExpired => Some(Self::SessionExpired),
            ErrorKind::InvalidArgument { .. } => Some(Self::Invalid),
            ErrorKind::Denied => Some(Self::Denied),
            ErrorKind::Limit { .. } => Some(Self::Limit),
            ErrorKind::InvariantViolated(_) => Some(Self::Incident),
            ErrorKind::LockLost | ErrorKind::Unsupported => None,
        }
    }
}

/// What the renewal of a grant came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// Its lease lasts longer.
    Extended,
    /// The grant, or its session, is not there.
    Lost,
    /// Something that may pass.
    Transient,
}

impl RenewOutcome {
    /// Every word.
    pub const WORDS: &'static [&'static str] =
        &[Self::Extended.word(), Self::Lost.word(), Self::Transient.word()];

    /// The label's value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Extended => "extended",
            Self::Lost => "lost",
            Self::Transient => "transient",
        }
    }

    /// Tells it from the result; `None` for a refusal or an incident.
    #[must_use]
    pub fn of(result: &Result<LockHandle>) -> Option<Self> {
        match result {
            Ok(_) => Some(Self::Extended),
            Err(error) => match error.kind() {
                ErrorKind::LockLost | ErrorKind::SessionExpired => Some(Self::Lost),
                _ => error.is_transient().then_some(Self::Transient),
            },
        }
    }
}

/// What a release came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// It ended the grant.
    Released,
    /// The caller does not hold the lock under this token.
    NotOwner,
    /// Something that may pass.
    Transient,
}

impl ReleaseOutcome {
    /// Every word.
    pub const WORDS: &'static [&'static str] =
        &[Self::Released.word(), Self::NotOwner.word(), Self::Transient.word()];

    /// The label's value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::NotOwner => "not_owner",
            Self::Transient => "transient",
        }
    }

    /// Tells it from the result; a token that is known to be another session's is not the
    /// caller's. `None` for another refusal or an incident.
    #[must_use]
    pub fn of(result: &Result<Released>) -> Option<Self> {
        match result {
            Ok(Released { released: true, .. }) => Some(Self::Released),
            Ok(Released { released: false, .. }) => Some(Self::NotOwner),
            Err(error) => match error.kind() {
                ErrorKind::Denied => Some(Self::NotOwner),
                _ => error.is_transient().then_some(Self::Transient),
            },
        }
    }
}

/// What a revocation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeOutcome {
    /// It ended a grant.
    Revoked,
    /// There was none; the floor was raised.
    Free,
    /// The grant was not the expected one.
    Mismatch,
    /// Something that may pass.
    Transient,
}

impl RevokeOutcome {
    /// Every word.
    pub const WORDS: &'static [&'static str] =
        &[Self::Revoked.word(), Self::Free.word(), Self::Mismatch.word(), Self::Transient.word()];

    /// The label's value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Revoked => "revoked",
            Self::Free => "free",
            Self::Mismatch => "mismatch",
            Self::Transient => "transient",
        }
    }

    /// Tells it from the result; `None` for a refusal or an incident.
    #[must_use]
    pub fn of(result: &Result<LockOutcome>) -> Option<Self> {
        match result {
            Ok(outcome) => Some(outcome.into()),
            Err(error) => error.is_transient().then_some(Self::Transient),
        }
    }
}

impl From<&LockOutcome> for RevokeOutcome {
    fn from(outcome: &LockOutcome) -> Self {
        match outcome {
            LockOutcome::Revoked { .. } => Self::Revoked,
            LockOutcome::Free { .. } => Self::Free,
            LockOutcome::Mismatch { .. } => Self::Mismatch,
        }
    }
}

/// How a wait for a holder ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The lock looks free: another try is worth while.
    Released,
    /// The time was up.
    Deadline,
    /// The caller left, its session died, or the server is shutting down.
    Interrupted,
    /// The store cannot tell of releases. The wait goes on by polling and ends as one of the
    /// others, so that this one comes on top of them.
    Fallback,
}

impl WaitOutcome {
    /// Every word.
    pub const WORDS: &'static [&'static str] = &[
        Self::Released.word(),
        Self::Deadline.word(),
        Self::Interrupted.word(),
        Self::Fallback.word(),
    ];

    /// The label's value.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Deadline => "deadline",
            Self::Interrupted => "interrupted",
            Self::Fallback => "fallback",
        }
    }
}
