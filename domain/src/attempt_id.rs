//! The name of one acquire call.

use core::fmt;

use crate::{LockError, Result, hex};

/// 128 random bits that name one acquire call, chosen by the caller or for it (C2).
///
/// It is stored with the grant, so that repeating a call whose outcome is unknown finds the
/// call's own grant instead of waiting for itself, and so that an attempt can be settled for good.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(u128);

impl AttemptId {
    /// An id from bits that the caller took from a good random source.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits, for a store that keeps them.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Reads 32 hexadecimal digits, or the hyphenated form that `uuidgen` prints.
    ///
    /// # Errors
    /// `InvalidArgument` naming `attempt_id`.
    pub fn parse(text: &str) -> Result<Self> {
        hex::parse(text).map(Self).ok_or_else(|| {
            LockError::invalid("attempt_id", "must be 32 hexadecimal digits or a UUID")
        })
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::format(self.0))
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttemptId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let id = AttemptId::from_bits(7);
        assert_eq!(AttemptId::parse(&id.to_string()).unwrap(), id);
        assert_eq!(AttemptId::parse("00000000-0000-0000-0000-000000000007").unwrap(), id);
        assert!(AttemptId::parse("7").is_err());
    }
}
