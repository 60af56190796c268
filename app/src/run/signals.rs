//! Signals that dlock itself receives.

use std::{future::poll_fn, io, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What is listened for: passed on to the command, or the end of the wait for the lock (C51).
const HEARD: [Signal; 6] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// The signals that this process listens for.
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Listens from now on. What was ignored when this process began (`nohup`, background jobs of
    /// scripts) stays ignored, for the command too.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn listen() -> io::Result<Self> {
        let ignored =
            std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_mask(&status));
        let mut heard = Vec::new();
        for signal in HEARD {
            let number = signal.as_raw();
            if ignored >> (number - 1) & 1 == 0 {
                heard.push((signal, unix::signal(SignalKind::from_raw(number))?));
            }
        }
        Ok(Self(heard))
    }

    /// The next signal.
    ///
    /// Cancellation: loses none.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The ignored signals in a process's `status`, one bit each.
fn ignored_mask(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_ignored() {
        assert_eq!(ignored_mask("Name:\tx\nSigIgn:\t0000000000001001\n"), 0x1001);
        for status in ["", "SigIgn:", "SigIgn:\tzz", "SigIgn: -1"] {
            assert_eq!(ignored_mask(status), 0, "{status:?}");
        }
    }

    #[tokio::test]
    async fn a_signal_is_heard_by_its_number() {
        let mut signals = Signals::listen().unwrap();
        rustix::process::kill_process(rustix::process::getpid(), Signal::USR2).unwrap();
        assert_eq!(signals.next().await, Signal::USR2);
    }
}
