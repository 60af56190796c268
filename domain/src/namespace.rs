//! Namespaces: the first part of a lock's key.

use core::fmt;
use std::sync::Arc;

use crate::{LockError, Result};

/// A group of locks with a token floor of its own: `[a-z0-9][a-z0-9._-]{0,62}` (C2).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace(Arc<str>);

impl Namespace {
    /// The namespace of a call that names none.
    pub const DEFAULT: &'static str = "default";

    /// Reads a namespace.
    ///
    /// # Errors
    /// `InvalidArgument` naming `namespace`.
    pub fn new(text: &str) -> Result<Self> {
        let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let rest = |b: u8| first(b) || matches!(b, b'.' | b'_' | b'-');
        match text.as_bytes() {
            [head, tail @ ..]
                if tail.len() <= 62 && first(*head) && tail.iter().copied().all(rest) =>
            {
                Ok(Self(text.into()))
            }
            _ => Err(LockError::invalid(
                "namespace",
                "must be 1 to 63 of a-z, 0-9, '.', '_', '-', and start with a letter or digit",
            )),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self(Self::DEFAULT.into())
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({:?})", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_exact() {
        for good in ["a", "0", "default", "a.b-c_d", &"a".repeat(63)] {
            assert_eq!(Namespace::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".a", "-a", "A", "a/b", "a b", "é", "a\n", &"a".repeat(64)] {
            let error = Namespace::new(bad).unwrap_err();
            assert_eq!(error.field(), Some("namespace"), "{bad}");
        }
    }
}
