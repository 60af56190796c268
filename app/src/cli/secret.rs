//! A session's id on the command line.
//!
//! It is a secret, and what stands on a command line can be read by others on the machine. `-`
//! reads it from standard input instead.

use std::io::Read as _;

use dlock_domain::{LockError, Result, SessionId};

/// Longer than any id and its end of line.
const MOST: u64 = 256;

/// Where the id comes from.
#[derive(Clone)]
pub(crate) enum Secret {
    Given(SessionId),
    StandardInput,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// Reads the option.
pub(crate) fn parse(text: &str) -> std::result::Result<Secret, String> {
    if text == "-" {
        return Ok(Secret::StandardInput);
    }
    SessionId::parse(text).map(Secret::Given).map_err(|error| error.detail().to_owned())
}

impl Secret {
    /// The id; reads standard input to its end if that is where it comes from.
    pub(crate) fn get(&self) -> Result<SessionId> {
        match self {
            Self::Given(id) => Ok(*id),
            Self::StandardInput => {
                let mut text = String::new();
                let read = std::io::stdin().lock().take(MOST).read_to_string(&mut text);
                read.map_err(|_| LockError::invalid("session_id", "could not be read"))?;
                SessionId::parse(text.trim())
            }
        }
    }
}
