//! What went through a proxy.

use crate::Direction;

/// What a proxy has seen since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that have ended.
    pub ended: u64,
    /// Bytes handed on to the server.
    pub to_server: u64,
    /// Bytes handed on to clients.
    pub to_client: u64,
    /// Bytes from clients that the server never gets.
    pub swallowed_to_server: u64,
    /// Bytes from the server that no client ever gets.
    pub swallowed_to_client: u64,
    /// Connections whose reply was swallowed by order
    /// ([`swallow_next_reply`](crate::Proxy::swallow_next_reply)).
    pub replies_swallowed: u64,
}

impl Counts {
    pub(crate) fn passed(&mut self, direction: Direction, bytes: usize) {
        let count = match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        };
        *count += bytes as u64;
    }

    pub(crate) fn swallowed(&mut self, direction: Direction, bytes: usize) {
        let count = match direction {
            Direction::ToServer => &mut self.swallowed_to_server,
            Direction::ToClient => &mut self.swallowed_to_client,
        };
        *count += bytes as u64;
    }
}
