//! Lock names: opaque bytes of text, compared as they are.

use core::fmt;
use std::sync::Arc;

use crate::{LockError, Result};

/// The name of a lock within its namespace: 1 to 512 bytes of UTF-8 without control characters
/// (C2).
///
/// Names are opaque: compared byte for byte, never normalised, no separator means anything. `a`,
/// `a/`, `%2F` and both forms of `é` are different locks (C30).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// Reads a name.
    ///
    /// # Errors
    /// `InvalidArgument` naming `name` (C31).
    pub fn new(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(LockError::invalid("name", "must not be empty"));
        }
        if text.len() > Self::MAX_BYTES {
            return Err(LockError::invalid("name", "must be at most 512 bytes"));
        }
        if text.chars().any(char::is_control) {
            return Err(LockError::invalid("name", "must not contain control characters"));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockName({:?})", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c30_names_that_look_alike_are_different() {
        let names = [
            "a",
            "a/",
            "a/b",
            "/a",
            "//",
            ".",
            "..",
            "%2F",
            "%25",
            "a+b",
            "a b",
            "?x=1",
            "#",
            "\u{1f512}",
            "\u{e9}",
            "e\u{301}",
            "K",
            "k",
        ];
        for (i, one) in names.iter().enumerate() {
            for (j, other) in names.iter().enumerate() {
                let same = LockName::new(one).unwrap() == LockName::new(other).unwrap();
                assert_eq!(same, i == j, "{one} {other}");
            }
        }
    }

    #[test]
    fn c31_control_characters_and_sizes_are_refused() {
        assert!(LockName::new(&"x".repeat(512)).is_ok());
        for bad in ["", "\0", "a\nb", "\u{7f}", "\u{85}", "\u{1b}[0m", &"x".repeat(513)] {
            assert_eq!(LockName::new(bad).unwrap_err().field(), Some("name"), "{bad:?}");
        }
    }
}
