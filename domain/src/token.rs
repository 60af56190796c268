//! The fencing token.

use core::fmt;

use crate::{Invariant, LockError, Result};

/// A number that every grant of a key gets and that only grows: 1 … 2^53−1, exact in every JSON
/// reader (C2, INV-04).
///
/// Tokens are ordered and nothing else: there is no arithmetic on them, and no conversion from a
/// bare integer. Two constructors say where the number came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The greatest token, 2^53−1.
    pub const MAX: u64 = (1 << 53) - 1;

    /// A token that a user sent.
    ///
    /// # Errors
    /// `InvalidArgument` naming `fencing_token` when out of range (C36).
    pub fn from_user(number: u64) -> Result<Self> {
        Self::for_field(number, "fencing_token")
    }

    /// A token that a user sent in the field of another name, such as `expected_token`.
    ///
    /// # Errors
    /// `InvalidArgument` naming `field` when out of range.
    pub fn for_field(number: u64, field: &'static str) -> Result<Self> {
        Self::checked(number)
            .ok_or_else(|| LockError::invalid(field, "must be an integer from 1 to 2^53-1"))
    }

    /// A token that a store issued.
    ///
    /// # Errors
    /// `InvariantViolated` when out of range: the store's source is broken or exhausted.
    pub fn from_store(number: u64) -> Result<Self> {
        Self::checked(number).ok_or_else(|| {
            LockError::incident(
                Invariant::TokensRise,
                format!("the store issued {number}, which is not a token"),
            )
        })
    }

    const fn checked(number: u64) -> Option<Self> {
        if number >= 1 && number <= Self::MAX { Some(Self(number)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn c36_the_range_is_exact_and_says_whose_fault_it_was() {
        for good in [1, FencingToken::MAX] {
            assert_eq!(FencingToken::from_user(good).unwrap().get(), good);
            assert_eq!(FencingToken::from_store(good).unwrap().get(), good);
        }
        for bad in [0, 1 << 53, u64::MAX] {
            let user = FencingToken::from_user(bad).unwrap_err();
            assert_eq!(user.field(), Some("fencing_token"));
            let store = FencingToken::from_store(bad).unwrap_err();
            assert_eq!(store.kind(), ErrorKind::InvariantViolated(Invariant::TokensRise));
        }
    }
}
