//! Who has the terminal.
//!
//! If dlock is in the foreground with both its input and its output on the terminal, the command
//! gets it from its first instruction on: keys and Ctrl-C reach the command directly. In a
//! pipeline another program may need it (`dlock run … | less`), so the command only gets it when
//! it is stopped for want of it and dlock's own group is in the foreground; that covers `fg` too.
//! It goes back to dlock's group at the end.

use std::{
    io::{stdin, stdout},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{Mode, OFlags, open},
    process::{Pid, Signal, test_kill_process_group},
    termios::{isatty, tcgetpgrp, tcsetpgrp},
};

use super::{super::family, group::Group};

/// The controlling terminal, where there is one.
pub(super) struct Terminal {
    terminal: OwnedFd,
    /// dlock's group.
    home: Pid,
    handed: bool,
    wanted: bool,
}

impl Terminal {
    /// The terminal of our session, and the group of the process that started us.
    pub(super) fn of_parent() -> Option<Self> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = open("/dev/tty", flags, Mode::empty()).ok()?;
        let home = family::group_of_parent()?;
        Some(Self { terminal, home, handed: false, wanted: false })
    }

    /// A handle with which the command's process takes the terminal as it starts.
    pub(super) fn hand_over_at_start(&mut self) -> Option<OwnedFd> {
        let ours = isatty(stdin()) && isatty(stdout()) && self.foreground() == Some(self.home);
        let handle = ours.then(|| self.terminal.try_clone().ok())??;
        self.handed = true;
        Some(handle)
    }

    /// The command's process was stopped by this signal.
    pub(super) fn stopped(&mut self, group: &Group, signal: i32) {
        if signal == Signal::TSTP.as_raw() {
            // dlock cannot stop with it without losing the lock, and a lock that is kept for a
            // command that sleeps helps nobody.
            group.signal(Signal::CONT);
        } else if signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw() {
            self.wanted = true;
        }
    }

    /// Hands the terminal to a command that waits for it, once dlock's group may use it.
    pub(super) fn look(&mut self, group: &Group) {
        if !self.wanted {
            return;
        }
        let foreground = self.foreground();
        if foreground == Some(self.home) && tcsetpgrp(&self.terminal, group.leader()).is_ok() {
            self.handed = true;
        } else if foreground != Some(group.leader()) {
            return;
        }
        self.wanted = false;
        group.signal(Signal::CONT);
    }

    /// Gives the terminal back to dlock's group, unless somebody else took it meanwhile.
    pub(super) fn take_back(&self, group: &Group) {
        let Some(foreground) = self.foreground().filter(|_| self.handed) else { return };
        if foreground == group.leader() || test_kill_process_group(foreground).is_err() {
            // Whoever started dlock takes it itself if dlock's group is gone.
            let _ = tcsetpgrp(&self.terminal, self.home);
        }
    }

    fn foreground(&self) -> Option<Pid> {
        tcgetpgrp(&self.terminal).ok()
    }
}
