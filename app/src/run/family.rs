//! The processes that descend from one, read from `/proc`.
//!
//! A process group is not enough: `timeout` and shells with job control put what they start into
//! groups of their own. With a child subreaper every orphan stays a descendant, whatever its
//! group; only who left the session (`setsid`) is let go.
//!
//! Sessions and groups are read here and not asked of the system calls: in a container whose first
//! process made none of its own they belong to another namespace and have the number 0, which is a
//! good number to compare and no number of a process.

use std::{collections::HashMap, fs, io};

use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open, pidfd_send_signal,
    },
};

/// One process, as its `stat` file shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pid: i32,
    state: u8,
    parent: i32,
    group: i32,
    session: i32,
    started: u64,
}

impl Process {
    /// Reads a `stat` line. The name in it may hold anything, blanks and parentheses included.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_ends = line.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
        let rest = std::str::from_utf8(line.get(name_ends + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            pid: pid.parse().ok()?,
            state: *fields.next()?.as_bytes().first()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            started: fields.nth(15)?.parse().ok()?,
        })
    }

    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Dead ones wait for their parents and do nothing more.
    const fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }
}

/// Those in a table that descend from `root`, live, and belong to its session.
fn descendants(table: &[Process], root: i32, session: i32) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in table {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    // A table read in pieces can show a process twice and even a ring: each list is taken once.
    while let Some(parent) = open.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            open.push(process.pid);
            if process.session == session && process.lives() {
                found.push(*process);
            }
        }
    }
    found
}

/// This process's live descendants that did not leave its session.
///
/// # Errors
/// When `/proc` cannot be read or is not that of this process's namespace.
pub(super) fn living() -> io::Result<Vec<Process>> {
    let own = own()?;
    let mut table = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ended meanwhile is no longer of interest.
        table.extend(Process::read(pid));
    }
    Ok(descendants(&table, own.pid, own.session))
}

/// This process.
fn own() -> io::Result<Process> {
    let own = getpid().as_raw_pid();
    // What `/proc` calls us is another number where it shows another namespace.
    if fs::read_link("/proc/self")?.to_str() != Some(&own.to_string()) {
        return Err(io::Error::other("/proc shows other processes than ours"));
    }
    Process::read(own).ok_or_else(|| io::Error::other("/proc cannot be understood"))
}

/// The group of the process that started this one; `None` too where that group is not of this
/// namespace.
pub(super) fn group_of_parent() -> Option<Pid> {
    let parent = Process::read(getppid()?.as_raw_pid())?;
    Pid::from_raw(parent.group)
}

/// This process's own group, 0 where that is not of this namespace; `None` where it cannot be seen.
pub(super) fn own_group() -> Option<i32> {
    own().ok().map(|own| own.group)
}

/// Signals these processes, each only if it still is the one that was seen.
pub(super) fn signal(processes: &[Process], signal: Signal) {
    for process in processes {
        let Some(pid) = Pid::from_raw(process.pid) else { continue };
        // It may have ended, which is what is wanted: errors are no news.
        let _ = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => {
                // Opened first and looked at then: the handle stays with what was looked at.
                let same =
                    Process::read(process.pid).is_some_and(|now| now.started == process.started);
                if same { pidfd_send_signal(&handle, signal) } else { Ok(()) }
            }
            // Kernels before 5.3.
            Err(Errno::NOSYS) => kill_process(pid, signal),
            Err(_) => Ok(()),
        };
    }
}

/// Those outside this process group.
pub(super) fn outside(processes: Vec<Process>, group: i32) -> Vec<Process> {
    processes.into_iter().filter(|process| process.group != group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, session: i32, state: u8) -> Process {
        Process { pid, state, parent, group: pid, session, started: 1 }
    }

    #[test]
    fn reads_a_line_whatever_the_name() {
        let tail = "S 10 11 12 34816 11 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2 3";
        for name in ["sh", "a b", "a) R 1 1 1 (b", ")", "(", ""] {
            let line = format!("42 ({name}) {tail}");
            let read = Process::parse(line.as_bytes()).unwrap();
            let expected = Process {
                pid: 42,
                state: b'S',
                parent: 10,
                group: 11,
                session: 12,
                started: 987_654,
            };
            assert_eq!(read, expected, "{name:?}");
        }
    }

    #[test]
    fn anything_else_is_refused_without_a_panic() {
        for line in [
            "",
            ")",
            "1",
            "1 (a)",
            "1 (a) S",
            "x (a) S 1 1 1",
            "1 (a) S 1 1 1 2 3",
            "1 (a) S a b c",
        ] {
            assert_eq!(Process::parse(line.as_bytes()), None, "{line:?}");
        }
        assert_eq!(Process::parse(&[0xff, b')', 0xff]), None);
    }

    #[test]
    fn finds_descendants_across_groups_and_leaves_other_sessions_and_the_dead() {
        let table = [
            process(1, 0, 1, b'S'),
            process(10, 1, 5, b'S'),
            process(11, 10, 5, b'S'),
            process(12, 11, 5, b'R'),
            process(13, 11, 13, b'S'),
            process(14, 13, 5, b'T'),
            process(15, 10, 5, b'Z'),
            process(16, 1, 5, b'S'),
            // Rings.
            process(20, 21, 5, b'S'),
            process(21, 20, 5, b'S'),
        ];
        let mut found: Vec<i32> =
            descendants(&table, 10, 5).into_iter().map(|process| process.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [11, 12, 14]);
        assert_eq!(descendants(&table, 20, 5).len(), 2);
    }

    #[test]
    fn a_session_of_another_namespace_is_a_session_too() {
        let table = [
            process(1, 0, 0, b'S'),
            process(2, 1, 0, b'S'),
            process(3, 2, 0, b'R'),
            process(4, 2, 4, b'S'),
        ];
        let found: Vec<i32> = descendants(&table, 1, 0).iter().map(|process| process.pid).collect();
        assert_eq!(found, [2, 3]);
    }

    #[test]
    fn sees_its_own_child_and_signals_it() {
        use std::os::unix::process::ExitStatusExt;

        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mine: Vec<Process> =
            living().unwrap().into_iter().filter(|process| process.pid == pid).collect();
        assert_eq!(mine.len(), 1);
        let other = Process { started: mine[0].started + 1, ..mine[0] };
        signal(&[other], Signal::KILL);
        assert!(child.try_wait().unwrap().is_none(), "another process of that number is spared");
        signal(&mine, Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert!(living().unwrap().iter().all(|process| process.pid != pid));
    }
}
