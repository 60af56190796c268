//! The one place where the driver's errors become ours (INV-07, trap 30).

use std::{borrow::Cow, error::Error, sync::Arc};

use diesel::result::{DatabaseErrorKind, Error as DieselError};
use dlock_domain::{ErrorKind, Invariant, LockError};
use tokio_postgres::error::{DbError, Severity};

/// Why a statement failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server said so.
    Said(Arc<DbError>),
    /// The connection broke, or what came over it makes no sense.
    Broken(Arc<dyn Error + Send + Sync>),
}

impl Failure {
    /// An answer that is not what was asked for.
    pub(crate) fn unreadable(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Broken(Arc::from(why.into()))
    }

    /// The five characters that say what it is, if the server said so.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Said(error) => Some(error.code().code()),
            Self::Broken(_) => None,
        }
    }

    /// Whether the server surely refused the statement, and lives: then its transaction has done
    /// nothing. What ends the connection, or comes from a pooler that lost its server, may have come
    /// in place of an answer that was on its way.
    pub(crate) fn is_definite(&self) -> bool {
        match self {
            Self::Said(error) => {
                let fatal = matches!(
                    error.parsed_severity(),
                    Some(Severity::Fatal | Severity::Panic) | None
                );
                !fatal && !error.code().code().starts_with("08")
            }
            Self::Broken(_) => false,
        }
    }

    /// The same, where statements may have run that were to be part of it.
    pub(crate) fn and_nobody_knows(self) -> Self {
        match self {
            Self::Said(_) => Self::unreadable(self.text()),
            Self::Broken(_) => self,
        }
    }

    /// Whether the same transaction may well succeed the next time: a deadlock, or an isolation that
    /// could not be kept.
    pub(crate) fn is_worth_repeating(&self) -> bool {
        matches!(self.code(), Some("40001" | "40P01")) && self.is_definite()
    }

    /// Whether a lock was not to be had in the time that was set for it; nothing was done.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.code() == Some("55P03") && self.is_definite()
    }

    fn text(&self) -> String {
        match self {
            Self::Said(error) => format!("PostgreSQL says: {}", error.message()),
            Self::Broken(error) => format!("the connection to PostgreSQL: {error}"),
        }
    }

    fn kind(&self) -> ErrorKind {
        let Some(code) = self.code() else { return ErrorKind::Contention };
        match code {
            // Nothing is written here; or it is a standby, which supports no such transaction: all else
            // that we say every server supports.
            "25006" | "0A000" => ErrorKind::NotLeader,
            // Not let in, or not allowed.
            "28000" | "28P01" | "42501" | "3D000" => ErrorKind::Denied,
            // The sequence has come to its end (2^53 - 1).
            "2200H" => ErrorKind::InvariantViolated(Invariant::TokensRise),
            // A row that the schema's own rules forbid.
            code if code.starts_with("23") => {
                ErrorKind::InvariantViolated(Invariant::RecordsReadable)
            }
            _ => ErrorKind::Contention,
        }
    }

    /// As an error of ours.
    pub(crate) fn into_error(self, effect: Effect) -> LockError {
        let applied = effect == Effect::Writes && !self.is_definite();
        let text = match self.code() {
            Some("42P01" | "3F000" | "42703") => Cow::Owned(format!(
                "{}; is the schema there? `dlock postgres schema` prints it",
                self.text()
            )),
            _ => Cow::Owned(self.text()),
        };
        let error = LockError::new(self.kind(), text);
        let error = match self {
            // Its details may name rows, and so a session's secret.
            Self::Said(source) => {
                let text = format!("{} {}", source.severity(), source.code().code());
                error.caused_by(Spelled(text))
            }
            Self::Broken(source) => error.caused_by(Cause(source)),
        };
        if applied { error.maybe_applied() } else { error }
    }
}

/// A cause that several errors share.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(Arc<dyn Error + Send + Sync>);

/// Whether a call whose outcome nobody knows may have done what matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    Writes,
}

/// An error after which a write may have been done.
pub(crate) fn with(error: LockError, effect: Effect) -> LockError {
    match effect {
        Effect::Reads => error,
        Effect::Writes => error.maybe_applied(),
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => Self::Said(Arc::new(said.clone())),
            None => Self::Broken(Arc::new(Spelled::of(&error))),
        }
    }
}

/// The driver leaves its causes out of its words; here they are in.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Spelled(String);

impl Spelled {
    fn of(error: &dyn Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }
}

impl From<DieselError> for Failure {
    fn from(error: DieselError) -> Self {
        Self::unreadable(error)
    }
}

/// For diesel's own machinery (migrations): its words only.
impl From<Failure> for DieselError {
    fn from(failure: Failure) -> Self {
        let kind = match failure.code() {
            Some("25006") => DatabaseErrorKind::ReadOnlyTransaction,
            Some("40001") => DatabaseErrorKind::SerializationFailure,
            Some(_) => DatabaseErrorKind::Unknown,
            None => DatabaseErrorKind::UnableToSendCommand,
        };
        Self::DatabaseError(kind, Box::new(failure.text()))
    }
}
