//! The accept loop: bounded in connections, patient with nobody, and able to stop (traps 42, 45).

use core::{pin::pin, time::Duration};
use std::{io, sync::Arc};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpListener,
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{HttpConfig, stream::Impatient};

/// How much of a connection's input is held in memory at a time. A request's head must fit.
const MAX_BUFFER: usize = 16 * 1024;

/// The pause after a failed accept grows from the first to the second.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// Serves connections until `shutdown` is cancelled; returns when all are gone.
///
/// - At most `config.max_connections` at a time; further ones wait in the listener's backlog. A
///   connection whose request head does not come, or which stays idle, within
///   `config.header_read_timeout`, or whose client takes nothing of an answer for
///   `config.write_timeout`, ends: so those that wait get their turn.
/// - On `shutdown` nothing more is accepted, idle connections end, and the others have `drain` to
///   finish what they are at; then they are dropped, and with them their handlers.
/// - Failing to accept, for want of descriptors say, is a pause and never the end.
///
/// # Cancellation
/// Dropping the future drops every connection, as at the end of `drain`.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    config: HttpConfig,
    shutdown: CancellationToken,
    drain: Duration,
) {
    let places = Arc::new(Semaphore::new(config.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let connections = TaskTracker::new();
    let abort = CancellationToken::new();
    let _aborts_when_dropped = abort.clone().drop_guard();
    let mut pause = ACCEPT_PAUSE.0;

    loop {
        // Both arms are cancel safe: a place that was not taken goes to the next in line, a
        // connection that was not accepted stays in the backlog.
        let place = tokio::select! {
            () = shutdown.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                pause = ACCEPT_PAUSE.0;
                // Answers are small and must not wait for each other; a socket that cannot be
                // told so is only slower.
                let _ = stream.set_nodelay(true);
                let connection = connection(
                    Impatient::new(stream, config.write_timeout),
                    router.clone(),
                    config.header_read_timeout,
                    shutdown.clone(),
                    abort.clone(),
                );
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            // The one connection is broken, others are not.
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = sleep(pause) => pause = (pause * 2).min(ACCEPT_PAUSE.1),
                }
            }
        }
    }

    // From here on a client that connects is refused at once and can ask another server.
    drop(listener);
    connections.close();
    if timeout(drain, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "dropping connections that did not end");
        abort.cancel();
        connections.wait().await;
    }
}

async fn connection(
    stream: Impatient,
    router: Router,
    header_read_timeout: Duration,
    shutdown: CancellationToken,
    abort: CancellationToken,
) {
    let connection = http1::Builder::new()
        // Without a timer the time-out would be ignored.
        .timer(TokioTimer::new())
        .header_read_timeout(header_read_timeout)
        .max_buf_size(MAX_BUFFER)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);

    let mut asked = false;
    loop {
        tokio::select! {
            // Cancel safe: the connection is pinned outside and polled on.
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended badly");
                }
                return;
            }
            () = shutdown.cancelled(), if !asked => {
                asked = true;
                connection.as_mut().graceful_shutdown();
            }
            () = abort.cancelled() => return,
        }
    }
}

/// Whether accepting failed because of the connection and not because of this process.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    )
}
