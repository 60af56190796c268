//! The promises, by name.

use core::fmt;

/// A promise whose breach is an incident: an error and a log line at incident grade, never a
/// handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// INV-01: at most one live grant per key.
    OneGrantPerKey,
    /// INV-04: every token exceeds every token and floor before it.
    TokensRise,
    /// What the store gives back is what was put in: a record that cannot be read.
    RecordsReadable,
}

impl Invariant {
    /// The short name that logs and problem documents carry.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::OneGrantPerKey => "INV-01",
            Self::TokensRise => "INV-04",
            Self::RecordsReadable => "records-readable",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
