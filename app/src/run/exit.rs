//! The exit codes of `dlock run`, and of the other commands where they are alike (C3): the
//! command's own code, `128 + n` if signal n ended it, or one of these.

use dlock_domain::{ErrorKind, LockError};
use rustix::io::Errno;

/// Bad usage or a bad value.
pub const USAGE: u8 = 64;
/// The store or server cannot be reached, or is full.
pub const UNREACHABLE: u8 = 69;
/// A promise does not hold, or the supervisor died under its command.
pub const INCIDENT: u8 = 70;
/// Not granted in time.
pub const NOT_GRANTED: u8 = 75;
/// Not allowed.
pub const DENIED: u8 = 77;
/// The lock was lost, known or found at the end.
pub const LOST: u8 = 79;
/// The command cannot be executed.
pub const CANNOT_EXECUTE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The code of a death, or of a wait that was ended, by this signal.
#[must_use]
pub fn of_signal(number: u8) -> u8 {
    128_u8.saturating_add(number)
}

/// The code of an error of the lock service.
#[must_use]
pub fn of_error(error: &LockError) -> u8 {
    match error.kind() {
        ErrorKind::InvalidArgument { .. } => USAGE,
        ErrorKind::Contention
        | ErrorKind::NotLeader
        | ErrorKind::Draining
        | ErrorKind::Limit { .. }
        | ErrorKind::Unsupported => UNREACHABLE,
        ErrorKind::InvariantViolated(_) => INCIDENT,
        ErrorKind::Denied => DENIED,
        ErrorKind::LockLost | ErrorKind::SessionExpired => LOST,
    }
}

/// The code of a command that could not be started, as shells have it.
#[must_use]
pub fn of_spawn(error: Errno) -> u8 {
    if error == Errno::NOENT { NOT_FOUND } else { CANNOT_EXECUTE }
}

#[cfg(test)]
mod tests {
    use dlock_domain::Invariant;

    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code() {
        let table = [
            (LockError::invalid("ttl_ms", ""), 64),
            (LockError::contention(""), 69),
            (LockError::new(ErrorKind::NotLeader, ""), 69),
            (LockError::new(ErrorKind::Draining, ""), 69),
            (LockError::limit("lock.max_locks", ""), 69),
            (LockError::new(ErrorKind::Unsupported, ""), 69),
            (LockError::incident(Invariant::TokensRise, ""), 70),
            (LockError::new(ErrorKind::Denied, ""), 77),
            (LockError::lost(""), 79),
            (LockError::session_expired(), 79),
        ];
        for (error, code) in table {
            assert_eq!(of_error(&error), code, "{error}");
        }
    }

    #[test]
    fn spawn_errors_and_signals_as_shells_have_them() {
        assert_eq!(of_spawn(Errno::NOENT), 127);
        for error in [Errno::ACCESS, Errno::NOEXEC, Errno::ISDIR, Errno::AGAIN, Errno::TOOBIG] {
            assert_eq!(of_spawn(error), 126, "{error}");
        }
        assert_eq!([of_signal(9), of_signal(15), of_signal(64)], [137, 143, 192]);
        assert_eq!(of_signal(200), 255);
    }
}
