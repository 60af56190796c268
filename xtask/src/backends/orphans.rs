//! Who ends the tests when this tool is killed.
//!
//! A second process of this tool reads a pipe that only the first one can write to. When that is
//! gone, the pipe ends, and what the first one had started and not waited for is killed with
//! everything below it. What stands in a process group of its own is left: it looks after itself.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// The verb of the second process.
pub const VERB: &str = "end-with-me";

/// The second process, seen from the first.
#[derive(Debug)]
pub struct Ending {
    watcher: Child,
    orders: Option<ChildStdin>,
}

impl Ending {
    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        // In a group of its own it outlives what ends the first one's group.
        command.arg(VERB).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut watcher = command.spawn()?;
        let orders = watcher.stdin.take();
        Ok(Self { watcher, orders })
    }

    /// Has a process end when this one does.
    ///
    /// # Errors
    /// If the second process is gone.
    pub fn watch(&mut self, pid: u32) -> io::Result<()> {
        self.tell(&format!("watch {pid}\n"))
    }

    /// Takes that back; to be called before the process is waited for.
    ///
    /// # Errors
    /// If the second process is gone.
    pub fn forget(&mut self, pid: u32) -> io::Result<()> {
        self.tell(&format!("forget {pid}\n"))
    }

    fn tell(&mut self, order: &str) -> io::Result<()> {
        self.orders.as_mut().map_or(Ok(()), |pipe| pipe.write_all(order.as_bytes()))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.orders.take();
        // Fails only where it has been waited for.
        let _ = self.watcher.wait();
    }
}

/// The work of the second process: waits for the end of its input, then ends what it was told of.
pub fn run() {
    let mut watched = BTreeSet::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_once(' ').map(|(order, pid)| (order, pid.parse::<i32>())) {
            Some(("watch", Ok(pid))) => watched.insert(pid),
            Some(("forget", Ok(pid))) => watched.remove(&pid),
            _ => false,
        };
    }
    watched.into_iter().for_each(end);
}

/// Ends a process and what is below it in its group. Each is stopped before its children are looked
/// for, so that it can start no more.
fn end(pid: i32) {
    let Some(group) = stat(pid).map(|(_, group)| group) else { return };
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        send(parent, Signal::STOP);
        found.extend(children(parent, group));
        next += 1;
    }
    found.into_iter().for_each(|pid| send(pid, Signal::KILL));
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // Fails only where it has ended.
        let _ = kill_process(pid, signal);
    }
}

fn children(parent: i32, group: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid) == Some((parent, group))).collect()
}

/// The parent and the group of a process.
fn stat(pid: i32) -> Option<(i32, i32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it, in brackets, can hold anything.
    let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(1);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_what_is_below_it_end_and_other_groups_do_not() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & (sleep 600 & echo; wait) & wait"]).process_group(0);
        let mut tree = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut other = Command::new("sleep").arg("600").process_group(0).spawn().unwrap();
        let mut line = String::new();
        io::BufReader::new(tree.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = i32::try_from(tree.id()).unwrap();
        let below = |parent: i32| children(parent, pid);
        let all: Vec<_> =
            below(pid).into_iter().flat_map(|child| [vec![child], below(child)].concat()).collect();
        assert_eq!(all.len(), 3, "{all:?}");
        end(pid);
        tree.wait().unwrap();
        for pid in all {
            // Gone, or about to be reaped by whoever inherited it.
            let gone = (0..1_000).any(|_| {
                let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let gone = text.is_empty() || text.contains(") Z ");
                if !gone {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                gone
            });
            assert!(gone, "{pid}");
        }
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_is_no_trouble() {
        end(i32::MAX);
    }
}
