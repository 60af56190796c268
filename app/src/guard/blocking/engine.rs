//! The thread with the private runtime.

use std::{
    io,
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use dlock_domain::{ErrorKind, LockError, Result};
use tokio::{
    runtime::{Builder, Handle},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::guard::Locks;

/// How long what the last drops left behind may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// A runtime in a thread of its own, which ends when this is dropped.
pub(super) struct Engine {
    runtime: Handle,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    pub(super) fn start(
        make: impl FnOnce() -> Locks + Send + 'static,
    ) -> io::Result<(Self, Locks)> {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let (ready, answer) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name("dlock-guard".to_owned()).spawn(move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    // Whoever started this waits for it.
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            runtime.block_on(async move {
                let locks = make();
                let shared = locks.clone();
                let _ = ready.send(Ok((Handle::current(), locks)));
                stopped.cancelled().await;
                if timeout(FAREWELL, shared.settled()).await.is_err() {
                    tracing::warn!("locks were left unreleased: they end with their leases");
                }
            });
        })?;
        let (runtime, locks) = answer
            .recv()
            .map_err(|_| io::Error::other("the locks could not be made: their maker panicked"))??;
        Ok((Self { runtime, stop, thread: Some(thread) }, locks))
    }

    /// Runs a future on the private runtime and waits for its answer.
    ///
    /// # Errors
    /// `Unsupported` inside an async runtime, which would stand still meanwhile; the future is then
    /// dropped unasked.
    pub(super) fn call<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        if Handle::try_current().is_ok() {
            return Err(LockError::new(
                ErrorKind::Unsupported,
                "a blocking lock was used inside an async runtime: use the async guard there",
            ));
        }
        let (done, answer) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // The caller waits until this comes.
            let _ = done.send(future.await);
        });
        answer
            .recv()
            .map_err(|_| LockError::contention("the private runtime has ended").maybe_applied())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take()
            && Handle::try_current().is_err()
            && thread.join().is_err()
        {
            tracing::warn!("the private runtime's thread panicked");
        }
    }
}
