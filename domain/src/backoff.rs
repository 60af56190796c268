//! How long to wait before asking again.

use core::time::Duration;

/// Exponential backoff with full jitter above a floor.
///
/// The n-th delay is uniform between `floor` and `min(cap, floor · 2^(n+1))`. The floor keeps a
/// lucky draw from becoming a hot loop; chance is handed in, so the same draws give the same
/// delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    floor: Duration,
    cap: Duration,
}

impl Backoff {
    /// A backoff between two bounds; a cap below the floor counts as the floor.
    #[must_use]
    pub fn new(floor: Duration, cap: Duration) -> Self {
        Self { floor, cap: cap.max(floor) }
    }

    /// The delay before repeat number `attempt` (0 for the first), from 64 random bits.
    #[must_use]
    pub fn delay(self, attempt: u32, random: u64) -> Duration {
        let factor = 1_u32.checked_shl(attempt.saturating_add(1)).unwrap_or(u32::MAX);
        let ceiling = self.floor.saturating_mul(factor).min(self.cap);
        let span = u64::try_from((ceiling - self.floor).as_nanos()).unwrap_or(u64::MAX);
        // The product of two 64-bit numbers, less its lower half, is uniform over the span.
        let drawn = (u128::from(span) * u128::from(random)) >> 64;
        self.floor + Duration::from_nanos(u64::try_from(drawn).unwrap_or(span))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(20), Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_stay_between_floor_and_growing_ceiling() {
        let backoff = Backoff::default();
        let ms = Duration::from_millis;
        for (attempt, ceiling) in [(0, 40), (1, 80), (4, 640), (5, 1_000), (31, 1_000)] {
            assert_eq!(backoff.delay(attempt, 0), ms(20));
            let top = backoff.delay(attempt, u64::MAX);
            assert!(top <= ms(ceiling) && top > ms(ceiling) - ms(1), "{attempt}: {top:?}");
        }
        assert!(backoff.delay(u32::MAX, u64::MAX) <= ms(1_000));
    }

    #[test]
    fn odd_bounds_do_no_harm() {
        let inverted = Backoff::new(Duration::from_secs(2), Duration::from_secs(1));
        assert_eq!(inverted.delay(9, u64::MAX), Duration::from_secs(2));
        let huge = Backoff::new(Duration::MAX, Duration::MAX);
        assert_eq!(huge.delay(3, 1), Duration::MAX);
        assert_eq!(Backoff::new(Duration::ZERO, Duration::ZERO).delay(0, 5), Duration::ZERO);
    }
}
