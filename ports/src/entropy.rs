//! Chance, handed in: ids and jitter, so that tests can replay a seed.

/// A source of random bits.
pub trait Entropy: Send + Sync {
    /// 128 bits that nobody can guess.
    fn bits(&self) -> u128;

    /// 64 bits for jitter.
    fn jitter(&self) -> u64;
}
