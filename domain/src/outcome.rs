//! What revoking a lock does.

use core::fmt;
use std::sync::Arc;

use crate::{FencingToken, LockError, LockKey, OwnerId, Result, TokenFloor, WallTime, owner};

/// What became of a revoke (C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// A live grant was ended.
    Revoked {
        /// The token of the grant that was ended.
        previous: FencingToken,
        /// The key's floor afterwards, above `previous`.
        floor: TokenFloor,
    },
    /// Nothing was held; the floor was raised all the same.
    Free {
        /// The key's floor afterwards.
        floor: TokenFloor,
    },
    /// The live grant is not the expected one: nothing was changed.
    Mismatch {
        /// The token of the live grant; `None` if nothing is held.
        current: Option<FencingToken>,
    },
}

/// Why somebody revoked a lock: 1 to 1,024 bytes of printable text.
#[derive(Clone, PartialEq, Eq)]
pub struct Reason(Arc<str>);

impl Reason {
    /// The longest reason, in bytes.
    pub const MAX_BYTES: usize = 1_024;

    /// Reads a reason.
    ///
    /// # Errors
    /// `InvalidArgument` naming `reason` (C33).
    pub fn new(text: &str) -> Result<Self> {
        if text.is_empty() || text.len() > Self::MAX_BYTES {
            return Err(LockError::invalid("reason", "must be 1 to 1024 bytes"));
        }
        if !text.chars().all(owner::is_printable) {
            return Err(LockError::invalid("reason", "must be printable text"));
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reason({:?})", &*self.0)
    }
}

/// What a revoke leaves behind for whoever asks later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationRecord {
    /// What was revoked.
    pub key: LockKey,
    /// The token that was ended, if one was.
    pub previous: Option<FencingToken>,
    /// The key's floor afterwards.
    pub floor: TokenFloor,
    /// Who did it.
    pub actor: OwnerId,
    /// Why.
    pub reason: Reason,
    /// When.
    pub at: WallTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c33_reasons_are_printable_and_bounded() {
        assert!(Reason::new("holder's host is gone").is_ok());
        for bad in ["", "a\nb", "\u{1b}[2J", &"x".repeat(1_025)] {
            assert_eq!(Reason::new(bad).unwrap_err().field(), Some("reason"));
        }
    }
}
