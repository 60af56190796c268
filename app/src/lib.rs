//! dlock: a distributed lock service whose every grant carries a fencing token.

mod clock;
mod entropy;

pub use clock::SystemClock;
pub use entropy::OsEntropy;
