//! How much the store remembers.

/// Bounds on everything that grows (INV-10, C5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Lock records, held or free; one more is refused with `Limit` (`lock.max_locks`) once no
    /// free one can be dropped.
    pub max_locks: usize,
    /// Sessions, private ones included; one more is refused with `Limit` (`lock.max_sessions`).
    pub max_sessions: usize,
    /// Settled attempts of one session; one more is refused with `Limit`
    /// (`lock.max_settled_attempts`).
    pub max_settled_attempts: usize,
    /// Settled attempts without a session; the oldest gives way.
    pub max_settled_private: usize,
    /// Records of revocations; the oldest gives way.
    pub max_revocations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_locks: 1_000_000,
            max_sessions: 100_000,
            max_settled_attempts: 4_096,
            max_settled_private: 100_000,
            max_revocations: 10_000,
        }
    }
}
