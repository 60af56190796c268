//! An answer, before it is believed.
//!
//! Whatever stands between may answer in a server's place: a proxy's own pages, another service on
//! the port, half a body. Only what is a dlock server's beyond doubt counts as an answer;
//! everything else is a failure that may pass, of unknown effect, and never a loss (INV-07).

use core::time::Duration;

use dlock_domain::{LockError, Moment, Ttl, WallTime};
use serde::de::DeserializeOwned;

use crate::{ServerUrl, call::Effect, failure::Failure, problem::Document};

/// What an answer says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Problem,
    Other,
}

/// An answer that was read to its end.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) media: Media,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
    /// Before the try was sent: what deadlines count from.
    pub(crate) sent: Moment,
    /// When all of it was here.
    pub(crate) received: Moment,
    pub(crate) wall: WallTime,
    pub(crate) server: ServerUrl,
    pub(crate) effect: Effect,
}

impl Reply {
    /// The body of a success with this status; a problem document becomes its error.
    pub(crate) fn read<T: DeserializeOwned>(&self, status: u16) -> Result<T, Failure> {
        if self.status != status || self.media != Media::Json {
            return Err(self.failure());
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            // What was read may be a secret: the words of the parser stay out.
            self.foreign(&format!("the answer's JSON is not ours at column {}", error.column()))
        })
    }

    /// The problem document, if this is one of dlock's.
    pub(crate) fn problem(&self) -> Option<Document> {
        if self.media != Media::Problem {
            return None;
        }
        Document::read(&self.body, self.status)
    }

    /// The failure that this answer is.
    pub(crate) fn failure(&self) -> Failure {
        let error = self.problem().and_then(|problem| problem.error(self.status, self.effect));
        match error {
            Some(error) => Failure { error, retry_after: self.retry_after, answered: true },
            None => self.foreign(&format!("status {} and no answer of ours", self.status)),
        }
    }

    /// An answer that is not a dlock server's.
    pub(crate) fn foreign(&self, why: &str) -> Failure {
        let words = format!("{} does not answer like a dlock server: {why}", self.server);
        let error = LockError::contention(words);
        match self.effect {
            Effect::Read => error.into(),
            Effect::Write => error.maybe_applied().into(),
        }
    }

    /// A part of an answer that must be valid.
    pub(crate) fn part<T>(&self, part: dlock_domain::Result<T>) -> Result<T, Failure> {
        part.map_err(|error| self.foreign(error.field().unwrap_or("a value is out of range")))
    }

    /// A condition that an answer of ours meets.
    pub(crate) fn expect(&self, holds: bool, what: &'static str) -> Result<(), Failure> {
        if holds { Ok(()) } else { Err(self.foreign(what)) }
    }

    /// How long to believe in what is valid for `valid_ms` (INV-03).
    ///
    /// `valid_ms` counts from the moment at which the server received the request, and sending it
    /// was earlier. After a long wait it may exceed the lifetime, but no lease that was set before
    /// the answer came lives longer than one lifetime from then: a number that says so is cut.
    pub(crate) fn deadline(&self, valid_ms: u64, ttl: Ttl) -> Moment {
        let told = self.sent.after(Duration::from_millis(valid_ms));
        told.min(self.received.after(ttl.reliable()))
    }

    /// When the store will end a lease with this deadline, for display.
    pub(crate) fn expiry(&self, deadline: Moment, ttl: Ttl) -> WallTime {
        self.wall.after(deadline.since(self.received)).after(ttl.margin())
    }
}
