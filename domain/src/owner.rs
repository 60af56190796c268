//! Owners: a label for people.

use core::fmt;
use std::sync::Arc;

use crate::{LockError, Result};

/// Who says it holds a lock: 1 to 256 bytes of printable text, for people to read (C2).
///
/// Never part of a decision: two clients may share one (C24).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(Arc<str>);

impl OwnerId {
    /// The longest owner, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Reads an owner.
    ///
    /// # Errors
    /// `InvalidArgument` naming `owner`; control characters (CR, LF, escapes) are refused, so an
    /// owner forges no log line (C33).
    pub fn new(text: &str) -> Result<Self> {
        Self::for_field(text, "owner")
    }

    /// Reads an owner that the caller's user knows under another field's name, such as `actor`.
    ///
    /// # Errors
    /// `InvalidArgument` naming `field`.
    pub fn for_field(text: &str, field: &'static str) -> Result<Self> {
        if text.is_empty() {
            return Err(LockError::invalid(field, "must not be empty"));
        }
        if text.len() > Self::MAX_BYTES {
            return Err(LockError::invalid(field, "must be at most 256 bytes"));
        }
        if !text.chars().all(is_printable) {
            return Err(LockError::invalid(field, "must be printable text"));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a character can be shown without moving the cursor, hiding text or turning its
/// direction: what people read must be what was written (C33). Owners and reasons hold nothing
/// else; a lock's name may, and is escaped where it is shown.
#[must_use]
pub fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}' | '\u{ffa0}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnerId({:?})", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c33_nothing_that_could_forge_a_line_gets_in() {
        for good in ["me", "worker-1", "user@host:42", "Zoë (nightly)", &"x".repeat(256)] {
            assert!(OwnerId::new(good).is_ok(), "{good}");
        }
        for bad in
            ["", "a\r\nb", "\u{1b}[31mred", "a\u{202e}b", "a\u{2028}b", "\0", &"x".repeat(257)]
        {
            assert_eq!(OwnerId::new(bad).unwrap_err().field(), Some("owner"), "{bad:?}");
        }
        assert_eq!(OwnerId::for_field("", "actor").unwrap_err().field(), Some("actor"));
    }
}
