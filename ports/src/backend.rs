//! What a store offers, in one value.

use std::{fmt, sync::Arc};

use crate::{Directory, FloorControl, LockStore, ReleaseWaiter, SessionStore};

/// What an adapter builds and the application takes apart once: a capability that is `None` here
/// is absent for good, nobody asks again per call.
#[derive(Clone)]
pub struct Backend {
    /// Grants.
    pub locks: Arc<dyn LockStore>,
    /// Sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Being told of releases; without it callers poll.
    pub waiter: Option<Arc<dyn ReleaseWaiter>>,
    /// Listing.
    pub directory: Option<Arc<dyn Directory>>,
    /// Raising floors.
    pub floors: Option<Arc<dyn FloorControl>>,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("store", &self.locks.backend_id())
            .field("waiter", &self.waiter.is_some())
            .field("directory", &self.directory.is_some())
            .field("floors", &self.floors.is_some())
            .finish()
    }
}
