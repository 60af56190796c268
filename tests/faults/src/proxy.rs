//! The proxy, its port, and the orders a test gives it.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64, atomic::Ordering},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    connection,
    counts::Counts,
    orders::{Direction, Mode, Orders},
};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// A TCP proxy on a port of its own on 127.0.0.1. Dropping it ends everything: its port is closed
/// and its connections with it.
///
/// Orders hold until the next one for the same thing, for connections that are open and for those
/// to come. Bytes that were already handed to the system are out of reach.
#[derive(Debug)]
pub struct Proxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    listening: mpsc::UnboundedSender<(bool, oneshot::Sender<io::Result<()>>)>,
    _task: AbortOnDropHandle<()>,
}

/// What the proxy and its connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) upstream: SocketAddr,
    pub(crate) orders: watch::Sender<Orders>,
    pub(crate) counts: watch::Sender<Counts>,
    /// How many replies are still to be swallowed.
    armed: AtomicU64,
    /// Cancelled to reset every connection that was opened under it.
    reset: Mutex<CancellationToken>,
}

impl Proxy {
    /// Starts a proxy before a server, which need not be there yet. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system's, if it has no port left.
    pub fn start(upstream: SocketAddr) -> io::Result<Self> {
        // Bound and never listening: while connections are refused nobody else gets the port.
        let place = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let addr = place.local_addr()?;
        let shared = Arc::new(Shared {
            upstream,
            orders: watch::Sender::default(),
            counts: watch::Sender::default(),
            armed: AtomicU64::new(0),
            reset: Mutex::default(),
        });
        let (listening, requests) = mpsc::unbounded_channel();
        let door = Door { place, addr, listener: Some(listen(addr)?), shared: shared.clone() };
        let task = AbortOnDropHandle::new(tokio::spawn(door.keep(requests)));
        Ok(Self { addr, shared, listening, _task: task })
    }

    /// Where to connect to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Everything passes, both ways, on connections to come too. What was told to swallow its
    /// reply goes on doing so.
    pub fn pass(&self) {
        self.shared.orders.send_modify(|orders| *orders = Orders::default());
    }

    /// Bytes of this direction vanish; connections stay, without a reset, and their ends are not
    /// passed on.
    pub fn blackhole(&self, direction: Direction) {
        self.set(direction, Mode::Blackhole);
    }

    /// What arrives is handed on this much later, one piece after the other.
    pub fn delay(&self, direction: Direction, by: Duration) {
        self.set(direction, Mode::Delay(by));
    }

    /// At most `bytes` (at least 1) are handed on at once, then nothing for the time of `every`.
    pub fn trickle(&self, direction: Direction, bytes: usize, every: Duration) {
        self.set(direction, Mode::Trickle { bytes: bytes.max(1), every });
    }

    /// Resets every connection that is open (RST, both ways); new ones are not affected.
    pub fn reset_all(&self) {
        let mut reset = self.shared.reset.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *reset).cancel();
    }

    /// The network is gone: both directions are black holes, and new connections are accepted but
    /// silent, also after [`heal`](Self::heal).
    pub fn cut(&self) {
        self.shared.orders.send_modify(|orders| *orders = Orders::cut());
    }

    /// The next request is forwarded, whichever connection it comes on, and nothing that the server
    /// says on that connection afterwards reaches the client; the connection is held open. Given
    /// twice it holds for two requests.
    pub fn swallow_next_reply(&self) {
        self.shared.armed.fetch_add(1, Ordering::AcqRel);
    }

    /// Refuses new connections, as if nothing listened; open ones are not affected. It is in force
    /// when this returns.
    ///
    /// # Errors
    /// None in practice; the proxy's task has ended otherwise.
    pub async fn refuse(&self) -> io::Result<()> {
        self.set_listening(false).await
    }

    /// Back to normal: connections are accepted and everything passes.
    ///
    /// # Errors
    /// The system's, if it refuses to listen again.
    pub async fn heal(&self) -> io::Result<()> {
        self.pass();
        self.shared.armed.store(0, Ordering::Release);
        self.set_listening(true).await
    }

    /// What went through until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.shared.counts.borrow()
    }

    /// Waits until the counts are like this, and answers them.
    pub async fn counted(&self, like_this: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.shared.counts.subscribe();
        // The sender lives as long as `self`, so the wait never fails.
        counts.wait_for(like_this).await.map_or_else(|_| self.counts(), |counts| *counts)
    }

    fn set(&self, direction: Direction, mode: Mode) {
        self.shared.orders.send_modify(|orders| orders.set(direction, mode));
    }

    async fn set_listening(&self, on: bool) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        let ended = || io::Error::other("the proxy's task has ended");
        self.listening.send((on, done)).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

impl Shared {
    /// Whether this request's reply is to be swallowed; one order counts once.
    pub(crate) fn take_armed(&self) -> bool {
        self.armed
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1))
            .is_ok()
    }

    fn reset(&self) -> CancellationToken {
        self.reset.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What accepts connections, or refuses to.
struct Door {
    #[expect(dead_code, reason = "it is held, so that the port is")]
    place: TcpSocket,
    addr: SocketAddr,
    listener: Option<TcpListener>,
    shared: Arc<Shared>,
}

impl Door {
    async fn keep(
        mut self,
        mut requests: mpsc::UnboundedReceiver<(bool, oneshot::Sender<io::Result<()>>)>,
    ) {
        let mut connections = JoinSet::new();
        loop {
            // Every arm may be dropped: none takes anything before it is ready.
            tokio::select! {
                biased;
                request = requests.recv() => match request {
                    Some((on, done)) => {
                        let outcome = self.set_listening(on);
                        // Whoever asked may have gone.
                        let _ = done.send(outcome);
                    }
                    None => return,
                },
                client = accepted(self.listener.as_ref()) => {
                    // A connection that failed before it was accepted is nobody's.
                    if let Ok(client) = client {
                        self.shared.counts.send_modify(|counts| counts.connections += 1);
                        let (shared, reset) = (self.shared.clone(), self.shared.reset());
                        connections.spawn(connection::serve(client, shared, reset));
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn set_listening(&mut self, on: bool) -> io::Result<()> {
        if !on {
            self.listener = None;
        } else if self.listener.is_none() {
            self.listener = Some(listen(self.addr)?);
        }
        Ok(())
    }
}

async fn accepted(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => listener.accept().await.map(|(client, _)| client),
        None => std::future::pending().await,
    }
}

fn bound(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Two sockets may be bound to the port as long as only one of them listens.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    bound(addr)?.listen(BACKLOG)
}
