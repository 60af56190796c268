//! The command and what descends from it.

use std::{
    ffi::OsString,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::Command,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process_group, pidfd_open,
    test_kill_process_group, wait,
};

use super::{
    super::{
        family,
        raw::{self, Deaf},
    },
    terminal::Terminal,
};

/// How often in a row nothing must be seen before nothing is there: a fork between two reads of
/// the process table can be missed once.
const QUIET_LOOKS: u32 = 2;

/// The command's process group, and everything else that descends from the command.
///
/// The group's number stays its own: while the leader is not reaped the kernel keeps it, and
/// afterwards as long as any process is in the group. Between the death of the last one and the
/// next look lie some milliseconds, in which nobody comes by that number again: numbers are given
/// out in turn, and a new owner would have to make a group of it besides.
pub(super) struct Group {
    leader: Pid,
    /// Wakes the poll when the leader dies; `None` afterwards and on kernels without.
    death: Option<OwnedFd>,
    leader_lives: bool,
    /// No child at all is left, so nothing descends from us.
    childless: bool,
    quiet_looks: u32,
}

/// What became of the command's own process.
pub(super) enum Change {
    Exited(u8),
    Signaled(u8),
    Stopped(i32),
}

impl Group {
    /// Starts the command as the leader of a new group, with our standard streams, our environment
    /// and nothing else of ours (C54).
    ///
    /// # Errors
    /// The system's, as `exec` has it.
    pub(super) fn start(
        command: &[OsString],
        deaf: Deaf,
        terminal: Option<&mut Terminal>,
    ) -> io::Result<Self> {
        let [program, arguments @ ..] = command else {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::INVAL.raw_os_error()));
        };
        let mut process = Command::new(program);
        process.args(arguments).process_group(0);
        let handed = terminal.and_then(Terminal::hand_over_at_start);
        raw::prepare(&mut process, deaf, handed, getpid());
        let child = process.spawn()?;
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("the system gave no process number"))?;
        Ok(Self {
            leader,
            // It is our child and not reaped, so the number is its own.
            death: pidfd_open(leader, PidfdFlags::empty()).ok(),
            leader_lives: true,
            childless: false,
            quiet_looks: 0,
        })
    }

    /// The group's number.
    pub(super) fn number(&self) -> i32 {
        self.leader.as_raw_pid()
    }

    /// The same, as the system takes it.
    pub(super) const fn leader(&self) -> Pid {
        self.leader
    }

    /// Becomes readable when the leader dies.
    pub(super) const fn death(&self) -> Option<&OwnedFd> {
        self.death.as_ref()
    }

    /// Reaps whatever has died, orphans included; answers what became of the leader.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if pid == self.leader => {
                    let small = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
                    if let Some(signal) = status.stopping_signal() {
                        changes.push(Change::Stopped(signal));
                        continue;
                    }
                    self.leader_lives = false;
                    self.death = None;
                    if let Some(code) = status.exit_status() {
                        changes.push(Change::Exited(small(code)));
                    } else if let Some(signal) = status.terminating_signal() {
                        changes.push(Change::Signaled(small(signal)));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return changes,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    return changes;
                }
            }
        }
    }

    /// Whether nothing is left: neither in the group nor, in our session, outside it.
    pub(super) fn is_gone(&mut self) -> bool {
        if self.leader_lives {
            return false;
        }
        if self.childless {
            return true;
        }
        match family::living() {
            Ok(living) => {
                self.quiet_looks = if living.is_empty() { self.quiet_looks + 1 } else { 0 };
                self.quiet_looks >= QUIET_LOOKS
            }
            // Without a process table the group is all that can be seen.
            Err(_) => test_kill_process_group(self.leader).is_err(),
        }
    }

    /// Passes a signal on to the group, as the terminal would.
    pub(super) fn signal(&self, signal: Signal) {
        // An empty group is no news.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Ends the group, at once and whole, and then whatever else descends from the command.
    pub(super) fn end(&self, signal: Signal) {
        self.signal(signal);
        let others = family::living()
            .map(|living| family::outside(living, self.number()))
            .unwrap_or_default();
        family::signal(&others, signal);
        if signal != Signal::KILL {
            // What is stopped would not hear it.
            self.signal(Signal::CONT);
            family::signal(&others, Signal::CONT);
        }
    }
}
