//! An optional capability: listing what is held.

use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::{Deadline, LockInfo, LockName, Namespace, Result};

/// Which locks to list.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// In this namespace.
    pub namespace: Namespace,
    /// Whose names begin with these bytes; empty for all.
    pub prefix: Arc<str>,
    /// After this name, the `next` of the page before.
    pub after: Option<LockName>,
    /// At most so many; 0 counts as 1.
    pub limit: u16,
}

/// Part of a listing.
#[derive(Clone, Debug)]
pub struct Page {
    /// Live locks in byte order of their names.
    pub locks: Vec<LockInfo>,
    /// Where the next page starts; `None` at the end.
    pub next: Option<LockName>,
}

/// Lists live locks.
#[async_trait]
pub trait Directory: Send + Sync {
    /// One page. Each page is consistent in itself; a lock held throughout the whole listing is
    /// listed exactly once, others may or may not be.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`; `InvariantViolated` for a record that cannot be read.
    ///
    /// # Cancellation
    /// Leaves nothing.
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page>;
}
