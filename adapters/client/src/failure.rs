//! A try that failed.

use core::time::Duration;

use dlock_domain::LockError;

/// Why a try failed, and when its server wants to be asked again.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: LockError,
    /// What `Retry-After` said, bounded.
    pub(crate) retry_after: Option<Duration>,
    /// Whether a dlock server said so, which then is there and answers.
    pub(crate) answered: bool,
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self { error, retry_after: None, answered: false }
    }
}
