//! A file that keeps the highest revision known over a restart of this process (trap 15).
//!
//! A cluster that was set back while this server was down looks like any other to a process that
//! remembers nothing. The file is written once a second at most: a revision of the last second may
//! be missing, which a cluster that was restored from a backup has long since fallen behind.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use crate::wire::Wire;

/// How often it is brought up to date.
const EVERY: Duration = Duration::from_secs(1);

/// What the file says; 0 if there is none yet.
///
/// # Errors
/// The system's; `InvalidData` when it holds something else than a revision.
pub(crate) fn read(path: &Path) -> io::Result<i64> {
    match fs::read_to_string(path) {
        Ok(text) => text.trim().parse().ok().filter(|revision| *revision >= 0).ok_or_else(|| {
            let what = format!("{}: holds no revision of etcd", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}

/// Replaces what the file says, whole or not at all.
///
/// # Errors
/// The system's.
pub(crate) fn write(path: &Path, revision: i64) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut file = File::create(&beside)?;
    writeln!(file, "{revision}")?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The new name lasts only once its folder does.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Brings the file up to date for as long as the store lives.
pub(crate) async fn keep(path: PathBuf, wire: Weak<Wire>) {
    let mut written = -1;
    let mut complained = false;
    loop {
        let Some(strong) = wire.upgrade() else { return };
        let (clock, revision) = (Arc::clone(&strong.clock), strong.highest());
        drop(strong);
        if revision > written {
            let path = path.clone();
            // A disk may be slow.
            let writing = tokio::task::spawn_blocking(move || write(&path, revision));
            match writing.await {
                Ok(Ok(())) => (written, complained) = (revision, false),
                Ok(Err(error)) if !complained => {
                    tracing::warn!(%error, "the highest revision cannot be written down");
                    complained = true;
                }
                Ok(Err(_)) | Err(_) => {}
            }
        }
        clock.sleep_until(clock.now().after(EVERY)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is_taken_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("revision");
        assert_eq!(read(&path).unwrap(), 0);
        for revision in [1, i64::MAX, 7] {
            write(&path, revision).unwrap();
            assert_eq!(read(&path).unwrap(), revision);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        for text in ["", "x", "-1", "1 2", "9223372036854775808"] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains("revision"), "{text:?}: {error}");
        }
        assert!(write(&folder.path().join("absent/revision"), 1).is_err());
    }
}
