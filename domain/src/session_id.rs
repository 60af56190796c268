//! A session's id, which is also its secret.

use core::fmt;

use crate::{LockError, Result, hex};

/// The id of a session: 128 random bits, issued by the store (C2).
///
/// Whoever knows it can renew and release what the session holds, so it is a secret: it has no
/// `Display`, its `Debug` shows nothing, and [`expose`](Self::expose) is the only way to its text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u128);

impl SessionId {
    /// An id from bits that the caller took from a good random source.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits, for a store that keeps them.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Reads the text form that [`expose`](Self::expose) gives.
    ///
    /// # Errors
    /// `InvalidArgument` naming `session_id`; the detail does not repeat the text.
    pub fn parse(text: &str) -> Result<Self> {
        hex::parse(text)
            .map(Self)
            .ok_or_else(|| LockError::invalid("session_id", "must be 32 hexadecimal digits"))
    }

    /// The secret in its text form, 32 hexadecimal digits. Never log it, never put it in a URL.
    #[must_use]
    pub fn expose(self) -> String {
        hex::format(self.0)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_secret_and_errors_do_not_repeat_it() {
        let id = SessionId::from_bits(0xfeed_beef);
        assert_eq!(format!("{id:?}"), "SessionId(hidden)");
        let error = SessionId::parse("topsecret").unwrap_err();
        assert!(!error.to_string().contains("topsecret"));
        assert_eq!(SessionId::parse(&id.expose()).unwrap(), id);
    }
}
