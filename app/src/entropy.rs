//! The system's random source.

use dlock_ports::Entropy;

/// Random bits from the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl OsEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is where chance comes from")]
    fn fill(bytes: &mut [u8]) {
        // Ids must not be guessable: without a random source there is no honest way on.
        if let Err(error) = getrandom::fill(bytes) {
            tracing::error!(%error, "the system's random source failed");
            std::process::abort();
        }
    }
}

impl Entropy for OsEntropy {
    fn bits(&self) -> u128 {
        let mut bytes = [0_u8; 16];
        Self::fill(&mut bytes);
        u128::from_ne_bytes(bytes)
    }

    fn jitter(&self) -> u64 {
        let mut bytes = [0_u8; 8];
        Self::fill(&mut bytes);
        u64::from_ne_bytes(bytes)
    }
}
