//! A handler that panics is an answer, not the end of the server.

use core::{
    future::{Future, poll_fn},
    task::Poll,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// That a future panicked. What it said has been told by the panic hook, and may hold anything, so
/// it goes no further.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Runs a future to its end or to its panic.
///
/// Dropping this drops the future, as without it. A future that panicked is dropped and never
/// polled again; what it shares with others is the service's, whose own tasks do the work.
pub(crate) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = Box::pin(future);
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}
