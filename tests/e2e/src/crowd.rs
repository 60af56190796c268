//! A crowd of clients that never come to the end of their requests: each sends a byte now and then
//! and takes a connection for it (C35, trap 45).

#![expect(clippy::expect_used, reason = "only tests call it")]

use std::{
    io::Write as _,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Half of them stay in their request's head.
const HEAD: &str = "POST /v1/locks/renew HTTP/1.1\r\nhost: localhost\r\nx-slow: ";

/// The others in its body, that is in a call that has reached its route.
const BODY: &str = "POST /v1/locks/renew HTTP/1.1\r\nhost: localhost\r\n\
                    content-type: application/json\r\ncontent-length: 60000\r\n\r\n";

/// The pause between two rounds of one byte on each connection.
const PAUSE: Duration = Duration::from_millis(200);

/// As many descriptors as this process may have: each client of a crowd is one.
///
/// # Panics
/// When fewer than `needed` may be open, which says how to allow more.
pub fn allow_descriptors(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    // Another test may raise it at the same time, to the same value.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let allowed = getrlimit(Resource::Nofile).current;
    assert!(
        allowed.is_none_or(|allowed| allowed >= needed),
        "{needed} open files are needed and {allowed:?} allowed: raise the hard limit, see `ulimit -Hn`"
    );
}

/// Clients that trickle, on a thread of its own, until it is dropped. A client that the server cuts
/// off comes back at once, for as long as anybody listens.
#[derive(Debug)]
pub struct Crowd {
    end: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Connects `size` clients, each with the beginning of a request.
    ///
    /// # Panics
    /// When one cannot connect.
    #[must_use]
    pub fn gather(address: SocketAddr, size: usize) -> Self {
        let connect = move |nth: usize| {
            let mut client = TcpStream::connect(address)?;
            client.write_all(if nth.is_multiple_of(2) { HEAD } else { BODY }.as_bytes())?;
            Ok::<_, std::io::Error>(client)
        };
        let mut clients: Vec<_> =
            (0..size).map(|nth| connect(nth).expect("a client of the crowd connects")).collect();
        let (end, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (ends, round) = (Arc::clone(&end), Arc::clone(&rounds));
        let thread = spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                for (nth, client) in clients.iter_mut().enumerate() {
                    if client.write_all(b"a").is_err()
                        && let Ok(again) = connect(nth)
                    {
                        *client = again;
                    }
                }
                round.fetch_add(1, Ordering::Relaxed);
                sleep(PAUSE);
            }
        });
        Self { end, rounds, thread: Some(thread) }
    }

    /// How many bytes each client has sent.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds.load(Ordering::Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
