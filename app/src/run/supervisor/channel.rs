//! The supervisor's end of the channel to dlock.

use std::{
    io::{self, ErrorKind, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
};

use super::super::{
    lines::Lines,
    message::{Order, Report},
    raw,
};

/// A channel whose other end is dlock's. Never waits.
pub(super) struct Channel {
    stream: UnixStream,
    lines: Lines,
}

impl Channel {
    /// Takes over the descriptor that dlock passed down.
    ///
    /// # Errors
    /// When it is no socket.
    pub(super) fn adopt(number: i32) -> io::Result<Self> {
        let stream = UnixStream::from(raw::adopt(number)?);
        stream.set_nonblocking(true)?;
        Ok(Self { stream, lines: Lines::default() })
    }

    /// The orders that have arrived. `None`: dlock is gone, or what speaks is not dlock.
    pub(super) fn orders(&mut self) -> Option<Vec<Order>> {
        let mut orders = Vec::new();
        let mut bytes = [0_u8; 256];
        loop {
            match self.stream.read(&mut bytes) {
                // What it said before it went is no longer of interest.
                Ok(0) => return None,
                Ok(read) => {
                    for line in self.lines.push(bytes.get(..read)?).ok()? {
                        orders.push(Order::parse(&line)?);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Some(orders),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// Reports. The few reports of a command's life always fit; a dlock that is gone is noticed by
    /// the next look for orders.
    pub(super) fn say(&mut self, report: Report) {
        let _ = self.stream.write_all(format!("{report}\n").as_bytes());
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::BufRead, os::fd::IntoRawFd};

    use rustix::process::Signal;

    use super::*;

    fn pair() -> (UnixStream, Channel) {
        let (dlock, ours) = UnixStream::pair().unwrap();
        (dlock, Channel::adopt(ours.into_raw_fd()).unwrap())
    }

    #[test]
    fn orders_arrive_and_the_end_is_seen() {
        let (mut dlock, mut channel) = pair();
        assert_eq!(channel.orders(), Some(vec![]));
        dlock.write_all(b"signal 15\nki").unwrap();
        assert_eq!(channel.orders(), Some(vec![Order::Signal(Signal::TERM)]));
        dlock.write_all(b"ll\n").unwrap();
        assert_eq!(channel.orders(), Some(vec![Order::Kill]));
        channel.say(Report::Gone);
        let mut line = String::new();
        std::io::BufReader::new(dlock).read_line(&mut line).unwrap();
        assert_eq!(line, "gone\n");
        assert_eq!(channel.orders(), None);
        channel.say(Report::Gone);
    }

    #[test]
    fn nonsense_is_taken_for_the_end() {
        for bytes in [&b"hello\n"[..], b"\n", b"\xff\n", &[b'x'; 200]] {
            let (mut dlock, mut channel) = pair();
            dlock.write_all(bytes).unwrap();
            assert_eq!(channel.orders(), None, "{bytes:?}");
        }
    }
}
