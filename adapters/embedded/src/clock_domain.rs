//! Which clock a file's moments were read from, and whether ours is the same (trap 33, C1).
//!
//! Moments on the boot clock mean something only within one boot and one time namespace. The file
//! remembers both. A file that nobody else uses may change its clock: every session that had not
//! expired by the last recorded moment gets its whole lifetime again, so nothing is freed early. A
//! file in use does not.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// The identity of a boot clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockDomain {
    /// The kernel's id of this boot.
    pub boot_id: String,
    /// The time namespace, which shifts the boot clock under the same boot id, and by how much: the
    /// kernel gives a dead namespace's number to the next one.
    pub time_namespace: String,
}

impl ClockDomain {
    /// This process's.
    ///
    /// # Errors
    /// When the kernel does not tell its boot id.
    pub fn current() -> io::Result<Self> {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        // Kernels without time namespaces have no such link, and only one clock.
        let namespace = fs::read_link("/proc/self/ns/time")
            .map_or_else(|_| "none".to_owned(), |link| link.to_string_lossy().into_owned());
        let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Ok(Self { boot_id, time_namespace: identity(&namespace, &offsets) })
    }
}

/// A namespace's number and its boot clock's offset, as one text.
fn identity(namespace: &str, offsets: &str) -> String {
    let boot = offsets.lines().find(|line| line.starts_with("boottime"));
    let words: Vec<&str> = boot.unwrap_or("boottime 0 0").split_whitespace().collect();
    format!("{namespace} {}", words.join(" "))
}

/// A share in the use of a file, for as long as it lives; the kernel gives it back when the
/// process dies, however it dies.
#[derive(Debug)]
pub(crate) struct InUse {
    file: File,
    alone: bool,
}

impl InUse {
    /// Joins the users of a database. Whoever comes first is alone until it calls
    /// [`settle`](Self::settle); those who come meanwhile wait for that.
    pub(crate) fn join(path: &Path, patience: Duration) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path)?;
        const PAUSE: Duration = Duration::from_millis(5);
        let mut waited = Duration::ZERO;
        loop {
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                return Ok(Self { file, alone: true });
            }
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                return Ok(Self { file, alone: false });
            }
            if waited >= patience {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process is opening it",
                ));
            }
            std::thread::sleep(PAUSE);
            waited += PAUSE;
        }
    }

    /// Whether nobody else uses the file.
    pub(crate) const fn alone(&self) -> bool {
        self.alone
    }

    /// Lets others in.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        if self.alone {
            flock(&self.file, FlockOperation::LockShared)?;
            self.alone = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_alone_until_it_settles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        let mut first = InUse::join(&path, Duration::ZERO).unwrap();
        assert!(first.alone());
        assert_eq!(InUse::join(&path, Duration::ZERO).unwrap_err().kind(), io::ErrorKind::TimedOut);
        first.settle().unwrap();
        let second = InUse::join(&path, Duration::ZERO).unwrap();
        assert!(!second.alone());
        drop((first, second));
        assert!(InUse::join(&path, Duration::ZERO).unwrap().alone());
    }

    #[test]
    fn trap33_a_reused_namespace_number_is_told_by_its_offset() {
        let one = identity(
            "time:[7]",
            "monotonic           0         0\nboottime       1000         0\n",
        );
        let other = identity(
            "time:[7]",
            "monotonic           0         0\nboottime     100000         0\n",
        );
        assert_eq!(one, "time:[7] boottime 1000 0");
        assert_ne!(one, other);
        assert_eq!(identity("none", ""), "none boottime 0 0");
    }

    #[test]
    fn this_boot_has_an_identity() {
        let one = ClockDomain::current().unwrap();
        assert!(!one.boot_id.is_empty());
        assert_eq!(one, ClockDomain::current().unwrap());
    }
}
