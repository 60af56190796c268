//! The token floor: what every later grant must exceed.

use core::fmt;

use crate::{FencingToken, LockError, Result};

/// A bound below every token still to come: 0 means none (C2).
///
/// Revoke raises it for one key, `floor raise` for a namespace, a purge for all that it forgot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenFloor(u64);

impl TokenFloor {
    /// No floor: every token is admitted.
    pub const NONE: Self = Self(0);

    /// How far above the highest known token a floor may be raised (C2, `FloorControl`): far
    /// enough for any restore, too little to exhaust the tokens by a slip of the hand.
    pub const MAX_LEAP: u64 = 1 << 40;

    /// A floor from a number, 0 … 2^53−1.
    ///
    /// # Errors
    /// `InvalidArgument` naming `at_least`.
    pub fn new(number: u64) -> Result<Self> {
        if number > FencingToken::MAX {
            return Err(LockError::invalid("at_least", "must be an integer from 0 to 2^53-1"));
        }
        Ok(Self(number))
    }

    /// The floor that a token sets: later tokens are greater than it.
    #[must_use]
    pub const fn at(token: FencingToken) -> Self {
        Self(token.get())
    }

    /// Whether a grant may carry this token.
    #[must_use]
    pub const fn admits(self, token: FencingToken) -> bool {
        token.get() > self.0
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Checks a wish to raise the floor against the highest number this store knows of.
    ///
    /// # Errors
    /// `InvalidArgument` naming `at_least` when it lies more than [`MAX_LEAP`](Self::MAX_LEAP)
    /// beyond it, or leaves no token above it.
    pub fn check_leap(self, highest_known: u64) -> Result<()> {
        if self.0 > highest_known.saturating_add(Self::MAX_LEAP) {
            return Err(LockError::invalid(
                "at_least",
                "lies more than 2^40 beyond the highest known token",
            ));
        }
        if self.0 >= FencingToken::MAX {
            return Err(LockError::invalid("at_least", "leaves no token above it"));
        }
        Ok(())
    }
}

impl fmt::Display for TokenFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_exactly_what_is_greater() {
        let token = |n| FencingToken::from_user(n).unwrap();
        assert!(TokenFloor::NONE.admits(token(1)));
        let floor = TokenFloor::at(token(5));
        assert!(!floor.admits(token(4)));
        assert!(!floor.admits(token(5)));
        assert!(floor.admits(token(6)));
    }

    #[test]
    fn leaps_are_bounded() {
        let floor = |n| TokenFloor::new(n).unwrap();
        assert!(floor(TokenFloor::MAX_LEAP + 7).check_leap(7).is_ok());
        let far = floor(TokenFloor::MAX_LEAP + 8).check_leap(7).unwrap_err();
        assert_eq!(far.field(), Some("at_least"));
        assert!(floor(FencingToken::MAX).check_leap(FencingToken::MAX).is_err());
        assert!(TokenFloor::new(1 << 53).is_err());
    }
}
