//! An address of this process's own, and ports on it.
//!
//! etcd has to be told its ports, so they are chosen before it listens. All of 127.0.0.0/8 is this
//! machine: a process that keeps to an address made from its number meets no other process that
//! does the same, and within the process no port is given twice while it is kept.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Ports that are in somebody's keeping.
static KEPT: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Free ports, kept until dropped.
#[derive(Debug)]
pub(crate) struct Ports(Vec<u16>);

/// The address of this process: 127.64.0.0 to 127.127.255.255, by its number, which has 22 bits at
/// most.
pub(crate) fn address() -> Ipv4Addr {
    let [_, high, middle, low] = (std::process::id() & 0x003f_ffff).to_be_bytes();
    Ipv4Addr::new(127, 64 + high, middle, low)
}

impl Ports {
    /// So many free ports.
    ///
    /// # Errors
    /// If the system has none.
    pub(crate) fn take(count: usize) -> std::io::Result<Self> {
        let mut ports = Self(Vec::new());
        let mut passed_over = Vec::new();
        while ports.0.len() < count {
            let listener = TcpListener::bind(SocketAddrV4::new(address(), 0))?;
            let port = listener.local_addr()?.port();
            if kept().insert(port) {
                ports.0.push(port);
            } else {
                // Held until the end, or it might be offered again and again.
                passed_over.push(listener);
            }
        }
        Ok(ports)
    }

    /// The address with the port of that number, counted from 0.
    pub(crate) fn at(&self, index: usize) -> SocketAddrV4 {
        SocketAddrV4::new(address(), self.0[index])
    }
}

impl Drop for Ports {
    fn drop(&mut self) {
        let mut kept = kept();
        for port in &self.0 {
            kept.remove(port);
        }
    }
}

fn kept() -> MutexGuard<'static, BTreeSet<u16>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_given_twice_while_it_is_kept_and_all_are_free() {
        let takes: Vec<_> = (0..50).map(|_| Ports::take(6).unwrap()).collect();
        let all: BTreeSet<_> = takes.iter().flat_map(|ports| ports.0.iter().copied()).collect();
        assert_eq!(all.len(), 300);
        assert!(address().is_loopback());
        let listener = TcpListener::bind(takes[7].at(5)).unwrap();
        assert_eq!(listener.local_addr().unwrap().port(), takes[7].0[5]);
        drop(takes);
        assert!(all.iter().any(|port| !kept().contains(port)), "what is dropped is free again");
    }
}
