//! The name of what is guarded.

use std::{fmt, sync::Arc};

use dlock_domain::{LockError, Result};

/// The name under which a resource keeps its mark: 1 to 512 bytes of UTF-8 without NUL, compared
/// byte for byte.
///
/// Often the name of the lock that protects it, but that is the resource's own affair. One mark per
/// lock: two locks whose tokens met at one mark would shut each other out, since tokens are ordered
/// for each lock only. For the same reason, where a lock moves to another store, raise that store's
/// floor to the mark first, or its tokens are all stale here.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Reads a name.
    ///
    /// # Errors
    /// `InvalidArgument` naming `resource`. NUL is refused here since no text of a database can
    /// hold it (trap 31).
    pub fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(LockError::invalid("resource", "must not be empty"));
        }
        if text.len() > Self::MAX_BYTES {
            return Err(LockError::invalid("resource", "must be at most 512 bytes"));
        }
        if text.contains('\0') {
            return Err(LockError::invalid("resource", "must not contain NUL"));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({:?})", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_31_names_that_no_database_can_hold_are_refused_by_field() {
        for bad in [String::new(), "r".repeat(513), "é".repeat(257), "a\0b".into()] {
            assert_eq!(Resource::new(&bad).unwrap_err().field(), Some("resource"), "{bad:?}");
        }
        for good in ["r", "payments/batch-17", "a\nb", "%00", &"é".repeat(256)] {
            assert_eq!(Resource::new(good).unwrap().as_str(), good);
        }
    }
}
