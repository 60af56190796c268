//! One try of one call.

use core::time::Duration;

use dlock_domain::{LockError, Result, Ttl};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
};
use serde::Serialize;

use crate::{
    core::Core,
    failure::Failure,
    reply::{Media, Reply},
};

/// The longest answer that is read, in bytes. A look is the exception: a session may hold tens of
/// thousands of locks.
pub(crate) const MAX_ANSWER: usize = 1024 * 1024;
pub(crate) const MAX_LOOK: usize = 16 * 1024 * 1024;

/// A `Retry-After` beyond this is cut: who says more is not believed.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// Whether a call that failed may have changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
}

/// A call, to be sent as often as it takes: every try sends the same bytes.
#[derive(Debug)]
pub(crate) struct Call {
    path: &'static str,
    query: Option<String>,
    body: Option<Vec<u8>>,
    pub(crate) effect: Effect,
    /// How long a try may take, if not the configured time.
    timeout: Option<Duration>,
    max_answer: usize,
}

impl Call {
    pub(crate) fn get(path: &'static str, query: String) -> Self {
        Self {
            path,
            query: Some(query),
            body: None,
            effect: Effect::Read,
            timeout: None,
            max_answer: MAX_ANSWER,
        }
    }

    pub(crate) fn post(
        path: &'static str,
        body: &(impl Serialize + Sync),
        effect: Effect,
    ) -> Result<Self> {
        let body = serde_json::to_vec(body).map_err(|error| {
            LockError::invalid("request", "cannot be written as JSON").caused_by(error)
        })?;
        let (query, max_answer) = (None, MAX_ANSWER);
        Ok(Self { path, query, body: Some(body), effect, timeout: None, max_answer })
    }

    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    pub(crate) fn up_to(self, max_answer: usize) -> Self {
        Self { max_answer, ..self }
    }

    /// A failure of which only the caller of this knows whether anything was sent.
    pub(crate) fn unknown(&self, error: LockError) -> Failure {
        match self.effect {
            Effect::Read => error.into(),
            Effect::Write => error.maybe_applied().into(),
        }
    }
}

impl Core {
    /// One try at one server.
    ///
    /// # Errors
    /// `Contention`, of no effect if no connection came about, else of unknown effect.
    ///
    /// # Cancellation
    /// The connection is closed: the server sees its client hang up.
    pub(crate) async fn try_once(
        &self,
        server: usize,
        call: &Call,
    ) -> core::result::Result<Reply, Failure> {
        let Some(server) = self.servers.get(server) else {
            return Err(LockError::contention("there is no such server").into());
        };
        let url = server.endpoint(call.path, call.query.as_deref());
        let mut request = match &call.body {
            Some(body) => {
                self.http.post(url).header(CONTENT_TYPE, "application/json").body(body.clone())
            }
            None => self.http.get(url),
        };
        if let Some(timeout) = call.timeout {
            request = request.timeout(timeout);
        }
        // Before anything leaves: what the server counts from is later (INV-03, trap 34).
        let sent = self.clock.now();
        let failed = |error: reqwest::Error| {
            // The address is in the words already, and a query is no use to anybody.
            let error = error.without_url();
            if error.is_connect() || error.is_builder() {
                let words = format!("cannot connect to {server}");
                return LockError::contention(words).caused_by(error).into();
            }
            let what = if error.is_timeout() { "did not answer in time" } else { "broke off" };
            call.unknown(LockError::contention(format!("{server} {what}")).caused_by(error))
        };
        let mut response = request.send().await.map_err(failed)?;
        let status = response.status();
        let (media, retry_after) = (media(response.headers()), retry_after(response.headers()));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > call.max_answer {
                let words = format!("{server} answers without end");
                return Err(call.unknown(LockError::contention(words)));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Reply {
            status: status.as_u16(),
            media,
            retry_after: retry_after.filter(|_| may_wait(status)),
            body,
            sent,
            received: self.clock.now(),
            wall: self.clock.wall(),
            server: server.clone(),
            effect: call.effect,
        })
    }

    /// How long a try of a renewal or a keep-alive may take: a share of a third of the lease, which is
    /// when its caller gives it up, so that by then another server was asked too.
    pub(crate) fn brisk(&self, ttl: Option<Ttl>) -> Duration {
        const LEAST: Duration = Duration::from_millis(500);
        /// More are not asked within one third.
        const ASKED: usize = 3;
        let shares = u32::try_from(self.servers.len().clamp(1, ASKED)).unwrap_or(1);
        let third = ttl.map_or(Duration::MAX, |ttl| ttl.as_duration() / 3);
        self.config.call_timeout.min(third.max(LEAST) / shares)
    }
}

fn may_wait(status: StatusCode) -> bool {
    matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
}

fn media(headers: &HeaderMap) -> Media {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    match given.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
        "application/json" => Media::Json,
        "application/problem+json" => Media::Problem,
        _ => Media::Other,
    }
}

/// Whole seconds; a date is not believed, clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}
