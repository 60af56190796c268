//! A server, wherever it runs: as a process of this machine, or in a container.

use std::path::Path;

use crate::{container::Contained, process::Process, watchdog::Watchdog};

/// Where it runs.
#[derive(Debug)]
pub(crate) enum Place {
    Process(Process),
    Container(Box<Contained>),
}

/// What was last done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Paused,
    /// Not running: not begun yet, killed, or stopped.
    Killed,
}

impl Place {
    /// Starts it; it need not be ready yet.
    ///
    /// # Errors
    /// The engine's, in words.
    pub(crate) fn start(&mut self, watchdog: &Watchdog) -> Result<(), String> {
        match self {
            Self::Process(process) => process.start(watchdog),
            Self::Container(container) => {
                container.start(watchdog).map_err(|error| in_words(&error))?;
            }
        }
        Ok(())
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self {
            Self::Process(process) => process.has_ended(),
            Self::Container(container) => container.has_ended(),
        }
    }

    /// Stops it where it stands, with everything that it started.
    pub(crate) fn pause(&self) {
        match self {
            Self::Process(process) => process.pause(),
            Self::Container(container) => container.pause(),
        }
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        match self {
            Self::Process(process) => process.resume(),
            Self::Container(container) => container.resume(),
        }
    }

    /// Ends it in the middle of whatever it is at, with everything that it started. A container that
    /// is paused goes on for a moment before that.
    pub(crate) fn kill(&mut self, state: State, watchdog: &Watchdog) {
        match self {
            Self::Process(process) => process.kill(watchdog),
            Self::Container(container) => {
                if state == State::Paused {
                    container.resume();
                }
                container.kill();
            }
        }
    }

    /// Asks it to end (`SIGINT`), and waits until it has.
    pub(crate) fn stop(&mut self, watchdog: &Watchdog) {
        match self {
            Self::Process(process) => process.stop(watchdog),
            Self::Container(container) => container.interrupt(),
        }
    }

    /// Takes it away, whatever state it is in.
    pub(crate) fn remove(&mut self, watchdog: &Watchdog) {
        match self {
            Self::Process(process) => process.kill(watchdog),
            Self::Container(container) => container.remove(watchdog),
        }
    }

    /// Whether nothing of it is left with an engine.
    pub(crate) fn is_removed(&self) -> bool {
        match self {
            Self::Process(_) => true,
            Self::Container(container) => container.container.is_none(),
        }
    }

    /// Copies its data aside, while it does not run.
    pub(crate) fn copy_data_to(&self, to: &Path) {
        match self {
            Self::Process(process) => process.copy_data_to(to),
            Self::Container(container) => container.copy_data_to(to),
        }
    }

    /// Puts data in the place of its own, while it does not run.
    pub(crate) fn copy_data_from(&self, from: &Path) {
        match self {
            Self::Process(process) => process.copy_data_from(from),
            Self::Container(container) => container.copy_data_from(from),
        }
    }

    /// What it said, in all its lives.
    pub(crate) fn log(&self) -> String {
        match self {
            Self::Process(process) => process.log(),
            Self::Container(container) => container.log(),
        }
    }
}

/// The end of a log, which is what is shown of it.
pub(crate) fn end_of(log: &str) -> String {
    /// How much of it.
    const SHOWN: usize = 30;
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}

/// Whether a server that did not start found its port taken by somebody else.
pub(crate) fn is_taken(said: &str) -> bool {
    said.to_ascii_lowercase().contains("address already in use")
}

/// An error with its causes.
fn in_words(error: &dyn std::error::Error) -> String {
    use std::fmt::Write as _;
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let _ = write!(words, ": {next}");
        cause = next.source();
    }
    words
}
