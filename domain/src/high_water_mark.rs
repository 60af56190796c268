//! The resource's side of fencing.

use core::fmt;

use crate::FencingToken;

/// The highest token that a resource has accepted; it accepts no lower one (INV-05).
///
/// Keep one beside each thing that a lock protects, and check every write against it in the same
/// transaction that writes. A new holder writes its token before it reads, else a late write of
/// its predecessor can still land in between (trap 40).
///
/// ```
/// # use dlock_domain::{FencingToken, HighWaterMark};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut mark = HighWaterMark::new();
/// mark.accept(FencingToken::from_user(7)?)?;
/// mark.accept(FencingToken::from_user(7)?)?; // the same holder writes again
/// assert!(mark.accept(FencingToken::from_user(6)?).is_err()); // a holder that lost the lock
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HighWaterMark {
    highest: Option<FencingToken>,
}

impl HighWaterMark {
    /// A mark that has seen nothing and accepts any token.
    #[must_use]
    pub const fn new() -> Self {
        Self { highest: None }
    }

    /// A mark read back from where the resource keeps it.
    #[must_use]
    pub const fn restored(highest: Option<FencingToken>) -> Self {
        Self { highest }
    }

    /// The highest token accepted so far, to be kept by the resource.
    #[must_use]
    pub const fn highest(&self) -> Option<FencingToken> {
        self.highest
    }

    /// Accepts a write with this token, and remembers it.
    ///
    /// # Errors
    /// [`StaleToken`] with both tokens when a higher one has been accepted; the mark is unchanged
    /// and the write must not happen.
    pub fn accept(&mut self, presented: FencingToken) -> core::result::Result<(), StaleToken> {
        match self.highest {
            Some(highest) if presented < highest => Err(StaleToken { presented, highest }),
            _ => {
                self.highest = Some(presented);
                Ok(())
            }
        }
    }
}

/// A resource's refusal of a write whose lock has gone to somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleToken {
    /// The token that came with the write.
    pub presented: FencingToken,
    /// The highest token accepted before.
    pub highest: FencingToken,
}

impl fmt::Display for StaleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} is stale: {} has been accepted", self.presented, self.highest)
    }
}

impl core::error::Error for StaleToken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv05_a_lower_token_is_refused_and_changes_nothing() {
        let token = |n| FencingToken::from_user(n).unwrap();
        let mut mark = HighWaterMark::restored(Some(token(5)));
        let refusal = mark.accept(token(4)).unwrap_err();
        assert_eq!(refusal, StaleToken { presented: token(4), highest: token(5) });
        assert_eq!(mark.highest(), Some(token(5)));
        assert!(mark.accept(token(5)).is_ok());
        assert!(mark.accept(token(9)).is_ok());
        assert!(mark.accept(token(8)).is_err());
    }
}
