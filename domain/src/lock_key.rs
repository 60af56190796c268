//! Namespace and name together: what a store keys by.

use core::fmt;

use crate::{LockName, Namespace};

/// The full key of a lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey {
    namespace: Namespace,
    name: LockName,
}

impl LockKey {
    /// A key from its two valid parts.
    #[must_use]
    pub const fn new(namespace: Namespace, name: LockName) -> Self {
        Self { namespace, name }
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The name within the namespace.
    #[must_use]
    pub const fn name(&self) -> &LockName {
        &self.name
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockKey({:?}, {:?})", self.namespace.as_str(), self.name.as_str())
    }
}
