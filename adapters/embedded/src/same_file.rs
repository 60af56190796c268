//! Whether the database's name still leads to the file that was opened.
//!
//! A file that was deleted or replaced lives on for those who have it open. They would go on
//! granting from it beside those who open the new one: two live grants of one lock, tokens given
//! twice. So every transaction looks first.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use dlock_domain::{Invariant, LockError, Result};

/// A file as it was when it was opened.
#[derive(Clone, Debug)]
pub(crate) struct SameFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SameFile {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self { path: path.into(), device: found.dev(), inode: found.ino() })
    }

    /// An incident if it is another file now, or none.
    pub(crate) fn check(&self) -> Result<()> {
        match fs::metadata(&self.path) {
            Ok(now) if now.dev() == self.device && now.ino() == self.inode => Ok(()),
            Ok(_) | Err(_) => Err(LockError::incident(
                Invariant::OneGrantPerKey,
                "the database file was removed or replaced while it was in use: nothing is granted \
                 from the old one; stop every process that uses it, then raise the token floor",
            )),
        }
    }
}
