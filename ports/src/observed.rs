//! A place in a store's history.

use std::{any::Any, fmt, sync::Arc};

/// Where in its store's history a failed attempt was decided.
///
/// Holds a type private to the adapter that made it: nobody else can read it, compare it, or
/// mistake it for a token. A waiter that starts from it misses no release (INV-08).
#[derive(Clone)]
pub struct Observed(Arc<dyn Any + Send + Sync>);

impl Observed {
    /// Wraps an adapter's own notion of a place.
    pub fn new<T: Any + Send + Sync>(place: T) -> Self {
        Self(Arc::new(place))
    }

    /// The place, for the adapter that made it; `None` for a stranger's, which a waiter answers
    /// with `Fallback`.
    #[must_use]
    pub fn read<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observed")
    }
}
