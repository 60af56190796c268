//! The few calls that the compiler cannot check, each with its reason. Nothing else in the crate
//! is unsafe.
#![expect(unsafe_code, reason = "descriptors and signal dispositions across fork and exec")]

use std::{
    ffi::c_int,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    os::unix::process::CommandExt,
    process::Command,
};

use rustix::{
    fs::{FileType, fstat},
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
    termios::tcsetpgrp,
};

// The C library that the standard library links. Handlers travel as addresses; 0 and 1 stand for
// the default and for ignoring, on every Linux.
unsafe extern "C" {
    fn signal(number: c_int, handler: usize) -> usize;
}
const DEFAULT: usize = 0;
const IGNORE: usize = 1;

/// Takes over a socket that the parent process passed down by number, and passes it on to nobody
/// (C54).
///
/// # Errors
/// When the number is not that of an open socket.
pub(super) fn adopt(number: i32) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: borrowed only to look; a number that is not open is answered by an error.
    let looked = unsafe { BorrowedFd::borrow_raw(number) };
    if FileType::from_raw_mode(fstat(looked)?.st_mode) != FileType::Socket {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    fcntl_setfd(looked, FdFlags::CLOEXEC)?;
    // SAFETY: the number was passed down for us to own. This process has only just begun and
    // opened no socket of its own, so nothing else here owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Lets the command inherit this descriptor under its own number. Only the child's copy loses its
/// close-on-exec mark, so no other child can inherit it meanwhile.
pub(super) fn pass_down(command: &mut Command, descriptor: &impl AsRawFd) {
    let number = descriptor.as_raw_fd();
    let unmark = move || {
        // SAFETY: after a fork the number still is what it was before; the caller keeps the
        // descriptor open until the spawn has returned.
        let inherited = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(inherited, FdFlags::empty()).map_err(io::Error::from)
    };
    // SAFETY: between fork and exec it makes one system call: no allocation, no lock.
    unsafe { command.pre_exec(unmark) };
}

/// Lets this process and what it starts hear of the ends of their children, whatever was inherited:
/// where they are ignored the system buries children itself, nobody learns how they ended, and their
/// numbers are free for others at once.
pub(super) fn hear_of_children() {
    // SAFETY: the default is no code of ours.
    unsafe { signal(Signal::CHILD.as_raw(), DEFAULT) };
}

/// Signals that this process ignores, and what they did before.
#[derive(Clone, Copy)]
pub(super) struct Deaf([(Signal, usize); DEAF_TO.len()]);

/// What is meant for the command or for dlock and reaches the supervisor too; and what the kernel
/// sends a background process that moves the terminal.
const DEAF_TO: [Signal; 9] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
    Signal::TTIN,
    Signal::TTOU,
];

impl Deaf {
    /// Ignores them from now on.
    pub(super) fn become_deaf() -> Self {
        Self(DEAF_TO.map(|number| {
            // SAFETY: ignoring installs no code that could run at a bad moment.
            let before = unsafe { signal(number.as_raw(), IGNORE) };
            (number, before)
        }))
    }

    /// Between fork and exec: as they were before. A signal that was ignored (`nohup`) stays so.
    fn recover(self) {
        for (number, before) in self.0 {
            if before != IGNORE {
                // SAFETY: `signal` is async-signal-safe, and the default is no code of ours.
                unsafe { signal(number.as_raw(), DEFAULT) };
            }
        }
    }
}

/// Prepares the supervisor's command: its own signals back, the terminal if one is handed over,
/// and death by KILL if the supervisor dies: belt and braces, since that reaches no grandchild.
pub(super) fn prepare(command: &mut Command, deaf: Deaf, terminal: Option<OwnedFd>, parent: Pid) {
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // It died before the line above took effect.
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        if let Some(terminal) = &terminal {
            // The process already leads its own group and still ignores TTOU. Without the
            // terminal it runs all the same.
            let _ = tcsetpgrp(terminal.as_fd(), getpid());
        }
        deaf.recover();
        Ok(())
    };
    // SAFETY: between fork and exec it only makes system calls: no allocation, no lock.
    unsafe { command.pre_exec(prepare) };
}

#[cfg(test)]
mod tests {
    use std::os::{fd::IntoRawFd, unix::net::UnixStream};

    use super::*;

    #[test]
    fn only_an_open_socket_is_adopted() {
        for number in [-1, 0, 1, 2, 9_999] {
            assert!(adopt(number).is_err(), "{number}");
        }
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(adopt(file.as_raw_fd()).is_err());
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let adopted = adopt(ours.into_raw_fd()).unwrap();
        assert_eq!(rustix::io::fcntl_getfd(&adopted).unwrap(), FdFlags::CLOEXEC);
    }

    #[test]
    fn a_descriptor_passed_down_is_open_in_the_child_only() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let number = ours.as_raw_fd();
        let mut passing = Command::new("test");
        passing.arg("-S").arg(format!("/proc/self/fd/{number}"));
        pass_down(&mut passing, &ours);
        assert!(passing.status().unwrap().success());
        assert_eq!(rustix::io::fcntl_getfd(&ours).unwrap(), FdFlags::CLOEXEC);
    }
}
