//! What is done with bytes, per direction.

use std::time::Duration;

/// Which way bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server: requests.
    ToServer,
    /// From the server to the client: replies.
    ToClient,
}

/// What is done with the bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Pass,
    Blackhole,
    Delay(Duration),
    Trickle {
        bytes: usize,
        every: Duration,
    },
}

/// What the proxy does now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Orders {
    to_server: Mode,
    to_client: Mode,
    /// New connections are accepted and get nothing.
    pub(crate) silent: bool,
}

impl Orders {
    pub(crate) fn mode(&self, direction: Direction) -> Mode {
        match direction {
            Direction::ToServer => self.to_server,
            Direction::ToClient => self.to_client,
        }
    }

    pub(crate) fn set(&mut self, direction: Direction, mode: Mode) {
        match direction {
            Direction::ToServer => self.to_server = mode,
            Direction::ToClient => self.to_client = mode,
        }
    }

    /// Both directions and new connections alike.
    pub(crate) const fn cut() -> Self {
        Self { to_server: Mode::Blackhole, to_client: Mode::Blackhole, silent: true }
    }
}
