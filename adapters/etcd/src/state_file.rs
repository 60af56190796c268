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

use dlock_domain::Namespace;

use crate::{
    history::Ended,
    numbering::{Heard, Numberings},
    wire::Wire,
};

/// How often it is brought up to date.
const EVERY: Duration = Duration::from_secs(1);

/// What outlives this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// The highest revision of this epoch.
    pub(crate) highest: i64,
    /// The epochs that have ended.
    pub(crate) ended: Vec<Ended>,
    /// The namespaces that were seen.
    pub(crate) namespaces: Vec<Heard>,
}

/// Takes a file for this server alone and reads it. The answer's second part is to be kept for as long
/// as the file is.
///
/// # Errors
/// The system's, with the path; `WouldBlock` when another server has it.
pub(crate) fn open(path: &Path) -> io::Result<(Memory, File)> {
    let with_path =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let own = File::create(PathBuf::from(beside)).map_err(with_path)?;
    own.try_lock().map_err(|_| {
        let what = format!("{}: is another server's", path.display());
        io::Error::new(io::ErrorKind::WouldBlock, what)
    })?;
    let memory = read(path)?;
    // Whether it can be written is found out now and not when it would be needed.
    write(path, &memory).map_err(with_path)?;
    Ok((memory, own))
}

/// What the file says: `revision N` in its first line; then `ended HIGHEST BEGAN` for each time the
/// cluster went back, and `namespace NAME OFFSET REQUIRED` for each that was seen. Nothing if there is
/// no file yet.
///
/// # Errors
/// The system's; `InvalidData` when it holds something else.
pub(crate) fn read(path: &Path) -> io::Result<Memory> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Memory::default()),
        Err(error) => {
            return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display())));
        }
    };
    parse(&text).ok_or_else(|| {
        let what = format!("{}: holds no revision of etcd", path.display());
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

fn parse(text: &str) -> Option<Memory> {
    let mut lines = text.lines();
    let highest = lines.next()?.strip_prefix("revision ")?.parse().ok()?;
    let mut memory = Memory { highest, ..Memory::default() };
    for line in lines {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["ended", highest, began] => memory
                .ended
                .push(Ended { highest: highest.parse().ok()?, next_began: began.parse().ok()? }),
            ["namespace", name, offset, required] => memory.namespaces.push(Heard {
                namespace: Namespace::new(name).ok()?,
                offset: offset.parse().ok()?,
                required: required.parse().ok()?,
            }),
            _ => return None,
        }
    }
    Some(memory)
}

fn text(memory: &Memory) -> String {
    let mut text = format!("revision {}\n", memory.highest);
    for Ended { highest, next_began } in &memory.ended {
        text += &format!("ended {highest} {next_began}\n");
    }
    for Heard { namespace, offset, required } in &memory.namespaces {
        text += &format!("namespace {} {offset} {required}\n", namespace.as_str());
    }
    text
}

/// Replaces what the file says, whole or not at all.
///
/// # Errors
/// The system's.
pub(crate) fn write(path: &Path, memory: &Memory) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let mut file = File::create(&beside)?;
    file.write_all(text(memory).as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The new name lasts only once its folder does.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Brings the file up to date for as long as the store lives.
pub(crate) async fn keep(path: PathBuf, wire: Weak<Wire>, numberings: Weak<Numberings>) {
    let mut written = Memory::default();
    let mut complained = false;
    loop {
        let (Some(strong), Some(known)) = (wire.upgrade(), numberings.upgrade()) else { return };
        let clock = Arc::clone(&strong.clock);
        let ended = strong.history.ended();
        let highest = strong.history.highest();
        let memory = Memory { highest, namespaces: known.heard(&ended), ended };
        drop((strong, known));
        if memory != written {
            let (path, new) = (path.clone(), memory.clone());
            // A disk may be slow.
            match tokio::task::spawn_blocking(move || write(&path, &new)).await {
                Ok(Ok(())) => (written, complained) = (memory, false),
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
        assert_eq!(read(&path).unwrap(), Memory::default());
        let heard = |name: &str, offset| Heard {
            namespace: Namespace::new(name).unwrap(),
            offset,
            required: offset / 2,
        };
        for namespaces in [vec![], vec![heard("default", 0), heard("other", u64::MAX)]] {
            let ended = vec![Ended { highest: 648, next_began: 588 }];
            let memory = Memory { highest: 600, ended, namespaces };
            write(&path, &memory).unwrap();
            assert_eq!(read(&path).unwrap(), memory);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        for text in [
            "",
            "x",
            "revision x",
            "revision 9223372036854775808",
            "revision 1\nended 1",
            "revision 1\nnamespace DEFAULT 1 1",
            "revision 1\nnamespace default -1 1",
        ] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains("revision"), "{text:?}: {error}");
        }
        assert!(write(&folder.path().join("absent/revision"), &Memory::default()).is_err());
    }

    #[test]
    fn a_file_is_one_servers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("revision");
        let (_, own) = open(&path).unwrap();
        let refused = open(&path).unwrap_err().to_string();
        assert!(refused.contains("another server's") && refused.contains("revision"), "{refused}");
        drop(own);
        assert!(open(&path).is_ok());
        let absent = open(&folder.path().join("absent/revision")).unwrap_err().to_string();
        assert!(absent.contains("absent/revision"), "{absent}");
    }
}
