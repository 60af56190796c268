//! What a lock protects: one number in a file, read and written by several processes, each access
//! atomic by itself. A read-modify-write is two of them, and that is what the lock is for.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use dlock::{FencingToken, HighWaterMark};
use rustix::fs::{FlockOperation, flock};

/// The register. Fenced, it keeps the highest token that it has seen and refuses any lower one
/// (INV-05); else it does whatever it is told, as most resources do.
#[derive(Debug)]
pub struct Register {
    path: PathBuf,
    fenced: bool,
}

impl Register {
    /// The register in this folder, which need not hold one yet.
    #[must_use]
    pub fn at(folder: &Path, fenced: bool) -> Self {
        Self { path: folder.join("register"), fenced }
    }

    /// The number; presenting the token first, so that a late write of a predecessor is refused
    /// from here on (trap 40).
    ///
    /// # Errors
    /// `PermissionDenied` for a stale token; the system's.
    pub fn read(&self, token: FencingToken) -> io::Result<u64> {
        self.alone(|state| {
            self.check(state, token)?;
            Ok(state.value)
        })
    }

    /// Sets the number.
    ///
    /// # Errors
    /// `PermissionDenied` for a stale token, with nothing written; the system's.
    pub fn write(&self, token: FencingToken, value: u64) -> io::Result<()> {
        self.alone(|state| {
            self.check(state, token)?;
            state.value = value;
            Ok(())
        })
    }

    /// The number, for whoever only looks.
    ///
    /// # Errors
    /// The system's.
    pub fn look(&self) -> io::Result<u64> {
        self.alone(|state| Ok(state.value))
    }

    fn check(&self, state: &mut State, token: FencingToken) -> io::Result<()> {
        if !self.fenced {
            return Ok(());
        }
        let refused = |stale| io::Error::new(io::ErrorKind::PermissionDenied, stale);
        state.mark.accept(token).map_err(refused)
    }

    /// One access: nobody else has the file meanwhile. A process that is stopped is stopped
    /// between accesses, never in one, unless somebody aims for that.
    fn alone<T>(&self, access: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let lock = self.path.with_extension("lock");
        let lock = File::options().create(true).append(true).open(lock)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut state = match fs::read_to_string(&self.path) {
            Ok(text) => State::read(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(error),
        };
        let answer = access(&mut state)?;
        fs::write(&self.path, state.written())?;
        Ok(answer)
    }
}

#[derive(Default)]
struct State {
    value: u64,
    mark: HighWaterMark,
}

impl State {
    fn read(text: &str) -> io::Result<Self> {
        let odd = || io::Error::other(format!("not a register: {text:?}"));
        let (value, highest) = text.trim().split_once(' ').ok_or_else(odd)?;
        let value = value.parse().map_err(|_| odd())?;
        let highest: u64 = highest.parse().map_err(|_| odd())?;
        // 0 is no token: none was seen.
        let highest = FencingToken::from_store(highest).ok();
        Ok(Self { value, mark: HighWaterMark::restored(highest) })
    }

    fn written(&self) -> String {
        let highest = self.mark.highest().map_or(0, FencingToken::get);
        format!("{} {highest}\n", self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::from_user(number).unwrap()
    }

    #[test]
    fn only_a_fenced_register_refuses_a_stale_token() {
        for fenced in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let register = Register::at(folder.path(), fenced);
            assert_eq!(register.read(token(1)).unwrap(), 0);
            register.write(token(1), 7).unwrap();
            assert_eq!(register.read(token(2)).unwrap(), 7);
            let late = register.write(token(1), 8);
            assert_eq!(late.is_err(), fenced);
            assert_eq!(register.look().unwrap(), if fenced { 7 } else { 8 });
            let refused = late.map_err(|error| error.kind());
            assert!(refused.is_ok() || refused == Err(io::ErrorKind::PermissionDenied));
        }
    }
}
