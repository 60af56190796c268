//! Seconds for display. The only ambient clock in this crate; no decision hangs on it.

use std::time::Instant;

/// A moment to count from.
#[derive(Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts counting now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "shows how long a step took, decides nothing")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_counts_backwards() {
        let watch = Stopwatch::start();
        let first = watch.seconds();
        assert!(first >= 0.0 && watch.seconds() >= first);
    }
}
