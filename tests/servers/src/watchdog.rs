//! Who cleans up when the test process is killed.
//!
//! A shell reads a pipe that only the test process can write to, so it reads the end of it when
//! that process is gone, however it went. Whatever it was told of and not told to be gone is ended
//! then. It stands in a process group of its own and ignores signals, so that what ends the tests of
//! a terminal or a job does not end it before its work.
//!
//! The parent-death signal would do for processes, if it were not sent when the *thread* ends that
//! started them: each test has a thread of its own. And it would do nothing for containers.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, PoisonError},
};

/// Its work. `$1` is the folder to remove; a line is a kind of thing and its name, or `gone` and
/// the name. An engine that is at creating a container cannot be stopped at that, so what is not
/// there yet is looked for again. A process is stopped before its children are looked for, so that it
/// starts no more; a server of PostgreSQL that was killed leaves a memory segment to the system, whose
/// number stands in its lock file.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
pids= containers= networks=
without() { for word in $1; do [ "$word" = "$2" ] || printf ' %s' "$word"; done; }
below() {
  for file in /proc/[0-9]*/stat; do
    read -r line <"$file" || continue
    set -- "$1" ${line##*)}
    [ "$3" != "$1" ] || printf ' %s' "${line%% *}"
  done
}
while read -r kind name; do
  case $kind in
    process) pids="$pids $name" ;;
    container) containers="$containers $name" ;;
    network) networks="$networks $name" ;;
    gone)
      pids=$(without "$pids" "$name")
      containers=$(without "$containers" "$name")
      networks=$(without "$networks" "$name") ;;
  esac
done
for pid in $pids; do
  kill -STOP "$pid"
  kill -KILL "$pid" $(below "$pid")
done
if [ -n "$containers$networks" ]; then
  for again in 1 2 3; do
    [ -z "$containers" ] || docker rm -fv $containers
    [ -z "$networks" ] || docker network rm $networks
    sleep 1
  done
fi
for lock in "$1"/*/postmaster.pid; do
  segment=$(sed -n 7p "$lock") && [ -z "$segment" ] || ipcrm -m "${segment##* }"
done
rm -rf "$1"
"#;

/// What the watchdog is told of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A process, by its number.
    Process,
    /// A container, by its name; also one that is about to be made.
    Container,
    /// A network, by its name; also one that is about to be made.
    Network,
}

/// A watchdog at work. Dropped, it does the rest of its work and ends.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    orders: Mutex<Option<ChildStdin>>,
}

impl Watchdog {
    /// Starts it; it will remove this folder.
    ///
    /// # Errors
    /// If there is no shell.
    pub(crate) fn start(folder: &Path) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(folder).process_group(0);
        // What it held open would keep readers of the test's output waiting.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let orders = Mutex::new(child.stdin.take());
        Ok(Self { child, orders })
    }

    /// Tells it of something that has to be gone at the end.
    ///
    /// # Errors
    /// If it is gone itself.
    pub(crate) fn watch(&self, kind: Kind, name: &str) -> io::Result<()> {
        let kind = match kind {
            Kind::Process => "process",
            Kind::Container => "container",
            Kind::Network => "network",
        };
        self.tell(kind, name)
    }

    /// Tells it that something is gone. Of a process it must be told before it is waited for: after
    /// that its number may be another's.
    ///
    /// # Errors
    /// If it is gone itself.
    pub(crate) fn forget(&self, name: &str) -> io::Result<()> {
        self.tell("gone", name)
    }

    fn tell(&self, what: &str, name: &str) -> io::Result<()> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        // One write: a line is told whole or not at all.
        orders.as_mut().map_or(Ok(()), |pipe| pipe.write_all(format!("{what} {name}\n").as_bytes()))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.orders.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Fails only where it has been waited for.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_told_gone_is_ended_and_the_folder_goes() {
        let folder = tempfile::tempdir().unwrap();
        let sleeper = || Command::new("sleep").arg("600").spawn().unwrap();
        let (mut left, mut gone) = (sleeper(), sleeper());
        let watchdog = Watchdog::start(folder.path()).unwrap();
        for child in [&left, &gone] {
            watchdog.watch(Kind::Process, &child.id().to_string()).unwrap();
        }
        watchdog.forget(&gone.id().to_string()).unwrap();
        drop(watchdog);
        assert!(!folder.path().exists());
        assert!(!left.wait().unwrap().success(), "it was killed");
        assert_eq!(gone.try_wait().unwrap(), None, "it is left alone");
        gone.kill().unwrap();
        gone.wait().unwrap();
    }
}
