//! The supervisor, as dlock sees it: a child process and a channel to it.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    os::unix::{net::UnixStream as StdStream, process::CommandExt},
    path::Path,
    process::Command,
};

use tokio::{io::Interest, net::UnixStream, process::Child};

use super::{
    lines::Lines,
    message::{Order, Report},
    raw,
};

/// What the supervisor's process is called, so that whoever kills `dlock` by name spares it.
pub(super) const NAME: &str = "lock-guard";

/// The hidden subcommand, and its one option.
const SUBCOMMAND: [&str; 2] = ["supervise", "--control-fd"];

/// Orders that the supervisor did not take yet are kept up to this many bytes.
const BACKLOG: usize = 16 * 1_024;

/// dlock's end of the channel.
pub(super) struct Guard {
    process: Child,
    channel: UnixStream,
    lines: Lines,
    reports: VecDeque<Option<Report>>,
    unsent: Vec<u8>,
}

impl Guard {
    /// Starts a supervisor, which waits for its first order. It gets the command's environment and
    /// standard streams, a process group of its own, so that a signal to dlock's group spares it,
    /// and its end of the channel.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(
        command: &[OsString],
        environment: Vec<(&'static str, Option<OsString>)>,
    ) -> io::Result<Self> {
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut process = Command::new(own_binary()?);
        process
            .arg0(NAME)
            .args(SUBCOMMAND)
            .arg(std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string())
            .arg("--")
            .args(command)
            .process_group(0);
        for (name, value) in environment {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        raw::pass_down(&mut process, &theirs);
        let process = tokio::process::Command::from(process).spawn()?;
        Ok(Self {
            process,
            channel: UnixStream::from_std(ours)?,
            lines: Lines::default(),
            reports: VecDeque::new(),
            unsent: Vec::new(),
        })
    }

    /// Gives an order. Never waits: what is not taken at once goes out while
    /// [`report`](Self::report) waits. A supervisor that takes none any more is either gone, which
    /// the next report says, or stopped, which the backstop covers.
    pub(super) fn order(&mut self, order: Order) {
        if self.unsent.len() < BACKLOG {
            self.unsent.extend(format!("{order}\n").bytes());
        }
        self.send();
    }

    fn send(&mut self) {
        while !self.unsent.is_empty() {
            match self.channel.try_write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Not now.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Never: nobody is there any more to be told, which reading says. What stayed here
                // would make `report` wait for a socket that always can be written to, and never is.
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// The next report; `None` when the supervisor is gone, or says what none would say.
    ///
    /// Cancellation: loses none.
    pub(super) async fn report(&mut self) -> Option<Report> {
        loop {
            if let Some(report) = self.reports.pop_front() {
                return report;
            }
            let mut interest = Interest::READABLE;
            if !self.unsent.is_empty() {
                interest |= Interest::WRITABLE;
            }
            self.channel.ready(interest).await.ok()?;
            self.send();
            let mut bytes = [0_u8; 256];
            match self.channel.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => match self.lines.push(bytes.get(..read)?) {
                    Ok(lines) => {
                        self.reports.extend(lines.iter().map(|line| Report::parse(line)));
                    }
                    Err(_) => return None,
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Returns when the supervisor's process has ended, so that it is left to nobody as a zombie:
    /// not every container's first process reaps.
    pub(super) async fn ended(&mut self) {
        // Reaped by somebody else: ended as well.
        let _ = self.process.wait().await;
    }
}

/// This very program, also when its file was replaced since it began, during a long wait, say.
fn own_binary() -> io::Result<std::path::PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rustix::process::Signal;

    use super::*;

    /// The supervisor said its last word and went, and is told something: the word is still heard, and
    /// nothing spins.
    #[tokio::test]
    async fn what_comes_too_late_to_be_told_keeps_nobody_from_hearing() {
        let (ours, mut theirs) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut guard = Guard {
            process: tokio::process::Command::new("true").spawn().unwrap(),
            channel: UnixStream::from_std(ours).unwrap(),
            lines: Lines::default(),
            reports: VecDeque::new(),
            unsent: Vec::new(),
        };
        theirs.write_all(b"gone\n").unwrap();
        drop(theirs);
        guard.order(Order::Signal(Signal::TERM));
        guard.order(Order::Kill);
        assert_eq!(guard.report().await, Some(Report::Gone));
        assert_eq!(guard.report().await, None);
        guard.ended().await;
    }
}
