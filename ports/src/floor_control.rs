//! An optional capability: raising a namespace's token floor after a restore.

use async_trait::async_trait;
use dlock_domain::{Deadline, Namespace, Result, TokenFloor};

/// What raising a floor came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    /// Every token granted in the namespace from now on is greater than this; at least what was
    /// asked.
    pub floor: TokenFloor,
    /// How many live grants ended with it.
    pub grants_ended: u64,
}

/// Raises token floors.
#[async_trait]
pub trait FloorControl: Send + Sync {
    /// Makes every later token in the namespace greater than `at_least`, and ends the namespace's
    /// live grants, in one transaction.
    ///
    /// # Errors
    /// `InvalidArgument` (`at_least`) more than 2^40 beyond the highest known token;
    /// `Contention`, `NotLeader`: it may have happened; a repeat is harmless.
    ///
    /// # Cancellation
    /// It may have happened: repeat.
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised>;
}
