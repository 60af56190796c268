//! One client, one upstream, and the two streams of bytes between them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    orders::{Direction, Mode},
    proxy::Shared,
};

/// Serves one connection to its end; ends both sides by RST when `reset` is cancelled.
pub(crate) async fn serve(client: TcpStream, shared: Arc<Shared>, reset: CancellationToken) {
    if shared.orders.borrow().silent {
        silence(client, &shared, &reset).await;
    } else {
        // Upstream refuses: so do we, as far as an accepted connection can.
        match TcpStream::connect(shared.upstream).await {
            Ok(server) => forward(client, server, &shared, &reset).await,
            Err(_) => end_by_reset([client]),
        }
    }
    shared.counts.send_modify(|counts| counts.ended += 1);
}

async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    shared: &Shared,
    reset: &CancellationToken,
) {
    // A proxy that gathers small packets would be a delay nobody asked for.
    let eager = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let outcome = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let swallowing = AtomicBool::new(false);
        let link = |direction| Link { direction, shared, swallowing: &swallowing };
        let both = async {
            tokio::try_join!(
                link(Direction::ToServer).pump(from_client, to_server),
                link(Direction::ToClient).pump(from_server, to_client),
            )
        };
        tokio::select! {
            biased;
            () = reset.cancelled() => None,
            ended = both => Some(ended),
        }
    };
    // Both sides said goodbye: dropping the streams is enough. Else one broke, and so does the
    // other.
    if eager.is_err() || !matches!(outcome, Some(Ok(_))) {
        end_by_reset([client, server]);
    }
}

/// Takes whatever comes and says nothing, until the client goes.
async fn silence(mut client: TcpStream, shared: &Shared, reset: &CancellationToken) {
    let mut buffer = vec![0; 4_096];
    loop {
        let read = tokio::select! {
            () = reset.cancelled() => return end_by_reset([client]),
            read = client.read(&mut buffer) => read,
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                shared.counts.send_modify(|counts| counts.swallowed(Direction::ToServer, read));
            }
        }
    }
}

/// One direction of a connection.
struct Link<'a> {
    direction: Direction,
    shared: &'a Shared,
    /// Nothing reaches the client any more.
    swallowing: &'a AtomicBool,
}

impl Link<'_> {
    /// Moves bytes as ordered until their source ends, then passes that end on.
    async fn pump(self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
        let mut buffer = vec![0; 16 * 1_024];
        loop {
            let read = match from.read(&mut buffer).await {
                Ok(read) => read,
                Err(_) if self.hides() => 0,
                Err(error) => return Err(error),
            };
            let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else { break };
            // Decided before the server can see the request, so its reply cannot come earlier.
            if self.direction == Direction::ToServer && self.shared.take_armed() {
                self.swallowing.store(true, Ordering::Release);
                self.shared.counts.send_modify(|counts| counts.replies_swallowed += 1);
            }
            self.deliver(&mut to, chunk).await?;
        }
        self.until_shown().await;
        // The other side may have gone already.
        let _ = to.shutdown().await;
        Ok(())
    }

    async fn deliver(&self, to: &mut WriteHalf<'_>, chunk: &[u8]) -> io::Result<()> {
        let mut rest = chunk;
        let mut orders = self.shared.orders.subscribe();
        while !rest.is_empty() {
            let mode = orders.borrow_and_update().mode(self.direction);
            if self.hides() {
                let bytes = rest.len();
                self.shared.counts.send_modify(|counts| counts.swallowed(self.direction, bytes));
                return Ok(());
            }
            let (now, pause) = match mode {
                Mode::Pass | Mode::Blackhole => (rest.len(), None),
                Mode::Delay(by) => (0, Some(by)),
                Mode::Trickle { bytes, every } => (bytes.min(rest.len()), Some(every)),
            };
            rest = self.write(to, rest, now).await?;
            if let Some(pause) = pause {
                let other = orders.wait_for(|orders| orders.mode(self.direction) != mode);
                tokio::select! {
                    biased;
                    // A new order counts at once, also for what was held back.
                    _ = other => continue,
                    () = sleep(pause) => {}
                }
                if now == 0 {
                    rest = self.write(to, rest, rest.len()).await?;
                }
            }
        }
        Ok(())
    }

    async fn write<'b>(
        &self,
        to: &mut WriteHalf<'_>,
        bytes: &'b [u8],
        now: usize,
    ) -> io::Result<&'b [u8]> {
        let (head, rest) = bytes.split_at(now);
        to.write_all(head).await?;
        self.shared.counts.send_modify(|counts| counts.passed(self.direction, now));
        Ok(rest)
    }

    fn hides(&self) -> bool {
        let swallowing =
            self.direction == Direction::ToClient && self.swallowing.load(Ordering::Acquire);
        swallowing || self.shared.orders.borrow().mode(self.direction) == Mode::Blackhole
    }

    /// A hole hides the end of a connection too, until it is healed.
    async fn until_shown(&self) {
        let mut orders = self.shared.orders.subscribe();
        while self.hides() {
            if orders.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Ends connections by RST.
fn end_by_reset<const N: usize>(streams: [TcpStream; N]) {
    for stream in streams {
        // Where it cannot be had, a plain end has to do.
        let _ = stream.set_zero_linger();
    }
}
