//! What dlock and its supervisor say to each other: one line each, text, bounded.

use std::fmt;

use dlock_domain::{Moment, Ttl};
use rustix::process::Signal;

use super::schedule::Lease;

/// What dlock tells the supervisor. Its silence for ever, the end of the stream, means its death.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The lease as it now stands, on the boot clock. The first order; the command starts on it.
    Lease(Lease),
    /// Pass this signal on to the command's group.
    Signal(Signal),
    /// The lock is lost: end everything.
    Kill,
}

/// What the supervisor tells dlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The command runs, in a process group of this number.
    Started(i32),
    /// It could not be started: the system's error number.
    NotStarted(i32),
    /// The command's own process ended with this code; others may live on.
    Exited(u8),
    /// A signal ended it.
    Signaled(u8),
    /// The supervisor has begun to end everything.
    Ending,
    /// Nothing is left.
    Gone,
}

impl Order {
    /// Reads a line. `None`: not an order.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["deadline", nanos, "ttl", millis] => Some(Self::Lease(Lease {
                deadline: Moment::from_nanos(number(nanos)?),
                ttl: Ttl::from_millis(number(millis)?).ok()?,
            })),
            ["signal", raw] => Signal::from_named_raw(number(raw)?).map(Self::Signal),
            ["kill"] => Some(Self::Kill),
            _ => None,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease(Lease { deadline, ttl }) => {
                write!(f, "deadline {} ttl {}", deadline.as_nanos(), ttl.as_millis())
            }
            Self::Signal(signal) => write!(f, "signal {}", signal.as_raw()),
            Self::Kill => f.write_str("kill"),
        }
    }
}

impl Report {
    /// Reads a line. `None`: not a report.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["started", group] => Some(Self::Started(number(group)?)),
            ["not-started", errno] => Some(Self::NotStarted(number(errno)?)),
            ["exited", code] => Some(Self::Exited(number(code)?)),
            ["signaled", signal] => Some(Self::Signaled(number(signal)?)),
            ["ending"] => Some(Self::Ending),
            ["gone"] => Some(Self::Gone),
            _ => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(group) => write!(f, "started {group}"),
            Self::NotStarted(errno) => write!(f, "not-started {errno}"),
            Self::Exited(code) => write!(f, "exited {code}"),
            Self::Signaled(signal) => write!(f, "signaled {signal}"),
            Self::Ending => f.write_str("ending"),
            Self::Gone => f.write_str("gone"),
        }
    }
}

/// Digits only: no sign, no blanks, nothing that does not fit.
fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_and_reports_come_back_as_they_were_said() {
        let lease = Lease {
            deadline: Moment::from_nanos(u64::MAX),
            ttl: Ttl::from_millis(Ttl::MAX_MILLIS).unwrap(),
        };
        for order in [Order::Lease(lease), Order::Signal(Signal::TERM), Order::Kill] {
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
        for report in [
            Report::Started(4_194_304),
            Report::NotStarted(2),
            Report::Exited(255),
            Report::Signaled(64),
            Report::Ending,
            Report::Gone,
        ] {
            assert_eq!(Report::parse(&report.to_string()), Some(report));
        }
    }

    #[test]
    fn anything_else_is_refused_without_a_panic() {
        for line in [
            "",
            " ",
            "deadline",
            "deadline 1",
            "deadline 1 ttl",
            "deadline 1 ttl 999",
            "deadline 1 ttl 86400001",
            "deadline -1 ttl 1000",
            "deadline +1 ttl 1000",
            "deadline 18446744073709551616 ttl 1000",
            "deadline 1 ttl 1000 more",
            "deadline  1 ttl 1000",
            "signal",
            "signal 0",
            "signal -9",
            "signal 999",
            "signal ",
            "kill ",
            "KILL",
            "kill\r",
            "\u{fffd}",
            "exited 256",
            "exited",
            "exited -1",
            "exited ٣",
            "started 99999999999",
            "gone 1",
        ] {
            assert_eq!(Order::parse(line), None, "{line:?}");
            assert_eq!(Report::parse(line), None, "{line:?}");
        }
    }
}
