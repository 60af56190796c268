//! Lifetimes of leases, and the margin that a holder keeps from their end.

use core::time::Duration;

use crate::{LockError, Result};

/// How long a lease lives without being kept alive: 1 s to 24 h in whole milliseconds (C2).
///
/// Out of range is an error, never clamped. A store may round up and reports what it made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

impl Ttl {
    /// The shortest, 1 second, in milliseconds.
    pub const MIN_MILLIS: u64 = 1_000;
    /// The longest, 24 hours, in milliseconds.
    pub const MAX_MILLIS: u64 = 24 * 60 * 60 * 1_000;

    /// A lifetime in milliseconds.
    ///
    /// # Errors
    /// `InvalidArgument` naming `ttl_ms` when out of range (C32).
    pub fn from_millis(millis: u64) -> Result<Self> {
        match u32::try_from(millis) {
            Ok(small) if (Self::MIN_MILLIS..=Self::MAX_MILLIS).contains(&millis) => Ok(Self(small)),
            _ => Err(LockError::invalid("ttl_ms", "must be from 1000 (1 s) to 86400000 (24 h)")),
        }
    }

    /// A lifetime from a duration.
    ///
    /// # Errors
    /// `InvalidArgument` naming `ttl_ms` when out of range or not a whole number of milliseconds.
    pub fn from_duration(duration: Duration) -> Result<Self> {
        if !duration.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(LockError::invalid("ttl_ms", "must be whole milliseconds"));
        }
        Self::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// Milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 as u64
    }

    /// As a duration.
    #[must_use]
    pub const fn as_duration(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }

    /// How long before the lease's end a holder stops believing in it: `max(50 ms, ttl/50)`
    /// (INV-03).
    #[must_use]
    pub fn margin(self) -> Duration {
        Duration::from_millis(50).max(self.as_duration() / 50)
    }

    /// The part of the lifetime that a holder may rely on: the whole less the [margin](Self::margin).
    #[must_use]
    pub fn reliable(self) -> Duration {
        self.as_duration() - self.margin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c32_out_of_range_is_an_error_never_clamped() {
        for bad in [0, 999, Ttl::MAX_MILLIS + 1, 1 << 63, u64::MAX] {
            assert_eq!(Ttl::from_millis(bad).unwrap_err().field(), Some("ttl_ms"), "{bad}");
        }
        for good in [1_000, 1_001, Ttl::MAX_MILLIS] {
            assert_eq!(Ttl::from_millis(good).unwrap().as_millis(), good);
        }
        assert!(Ttl::from_duration(Duration::from_micros(1_500_500)).is_err());
        assert!(Ttl::from_duration(Duration::MAX).is_err());
    }

    #[test]
    fn inv03_the_margin_is_a_fiftieth_but_at_least_50_ms() {
        let margin = |ms| Ttl::from_millis(ms).unwrap().margin();
        assert_eq!(margin(1_000), Duration::from_millis(50));
        assert_eq!(margin(2_500), Duration::from_millis(50));
        assert_eq!(margin(30_000), Duration::from_millis(600));
        assert_eq!(Ttl::from_millis(1_000).unwrap().reliable(), Duration::from_millis(950));
    }
}
