//! Every failure as an RFC 9457 problem document (C2, C3).

pub(crate) mod kind;

use core::error::Error;
use std::borrow::Cow;

use axum::{
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use dlock_domain::{Applied, ErrorKind, FencingToken, LockError};
use serde::{Serialize, Serializer};

use self::kind::Kind;
use crate::{info::InfoBody, reply};

/// A failure on its way to a client.
#[derive(Debug)]
pub(crate) struct Problem(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: Cow<'static, str>,
    retryable: bool,
    applied: Option<Applied>,
    field: Option<Cow<'static, str>>,
    limit: Option<&'static str>,
    invariant: Option<&'static str>,
    holder: Option<Option<InfoBody>>,
    current_token: Option<Option<u64>>,
}

impl Problem {
    fn new(kind: Kind, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            status: kind.status,
            kind: kind.name,
            title: kind.title,
            detail: detail.into(),
            retryable: false,
            applied: Some(Applied::No),
            field: None,
            limit: None,
            invariant: None,
            holder: None,
            current_token: None,
        }))
    }

    /// Somebody else has the lock. Not `retryable`: that word is for failures, and this is an
    /// answer; whether to ask again is the caller's to decide.
    pub(crate) fn not_granted(holder: Option<InfoBody>) -> Self {
        let mut problem = Self::new(kind::NOT_GRANTED, "the lock is held");
        problem.0.holder = Some(holder);
        problem
    }

    /// A conditional revoke that met another grant, or none. An answer as well.
    pub(crate) fn token_mismatch(current: Option<FencingToken>) -> Self {
        let detail = match current {
            Some(_) => "the lock is held under another token than expected_token",
            None => "nobody holds the lock",
        };
        let mut problem = Self::new(kind::TOKEN_MISMATCH, detail);
        problem.0.current_token = Some(current.map(FencingToken::get));
        problem
    }

    /// A look at a lock that nobody holds.
    pub(crate) fn not_held() -> Self {
        Self::new(kind::NOT_HELD, "nobody holds the lock").of_read()
    }

    /// A field whose name is only known at run time.
    pub(crate) fn invalid(
        field: impl Into<Cow<'static, str>>,
        detail: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut problem = Self::misshapen(detail.into());
        problem.0.field = Some(field.into());
        problem
    }

    /// JSON that is no object of ours.
    pub(crate) fn misshapen(detail: Cow<'static, str>) -> Self {
        Self::new(kind::INVALID_ARGUMENT, detail)
    }

    /// A body that is not JSON.
    pub(crate) fn malformed_body(detail: Cow<'static, str>) -> Self {
        Self::new(kind::MALFORMED_BODY, detail)
    }

    /// A query string that cannot be decoded.
    pub(crate) fn malformed_query(detail: &'static str) -> Self {
        Self::new(kind::MALFORMED_QUERY, detail)
    }

    /// A request without one host.
    pub(crate) fn malformed_host(detail: &'static str) -> Self {
        Self::new(kind::MALFORMED_HOST, detail)
    }

    /// A host that this server does not answer for.
    pub(crate) fn misdirected() -> Self {
        Self::new(kind::MISDIRECTED, "this server answers only for loopback addresses")
    }

    /// A body of another type.
    pub(crate) fn wrong_type(detail: &'static str) -> Self {
        Self::new(kind::WRONG_TYPE, detail)
    }

    /// A body over the limit, in bytes.
    pub(crate) fn too_large(limit: usize) -> Self {
        let detail = format!("the body must be at most {limit} bytes");
        let mut problem = Self::new(kind::TOO_LARGE, detail);
        problem.0.limit = Some("http.max_body");
        problem
    }

    /// A body that does not come.
    pub(crate) fn too_slow() -> Self {
        let mut problem = Self::new(kind::TOO_SLOW, "the body did not arrive in time");
        problem.0.retryable = true;
        problem
    }

    /// A path without a route.
    pub(crate) fn not_found() -> Self {
        Self::new(kind::NOT_FOUND, "there is no such route")
    }

    /// A server that was given no metrics.
    pub(crate) fn no_metrics() -> Self {
        Self::new(kind::NOT_FOUND, "this server keeps no metrics").of_read()
    }

    /// A route without this method; the router adds `Allow`.
    pub(crate) fn method_not_allowed() -> Self {
        Self::new(kind::METHOD_NOT_ALLOWED, "this route does not have that method")
    }

    /// A mistake of ours. What was asked for may have been done.
    pub(crate) fn panicked() -> Self {
        let detail = "the server made a mistake; its log says more";
        let mut problem = Self::new(kind::INTERNAL, detail);
        problem.0.applied = Some(Applied::Unknown);
        problem
    }

    /// The same failure of a call that changes nothing, so `applied` means nothing.
    pub(crate) fn of_read(mut self) -> Self {
        self.0.applied = None;
        self
    }

    /// The same failure of a call with this method.
    pub(crate) fn of(self, method: &Method) -> Self {
        if method.is_safe() { self.of_read() } else { self }
    }

    /// The same failure, inside an element of a list.
    pub(crate) fn within(mut self, list: &'static str, at: usize) -> Self {
        if let Some(field) = self.0.field.take() {
            self.0.field = Some(format!("{list}[{at}].{field}").into());
        }
        self
    }

    /// The same failure as the reason for not being ready.
    pub(crate) fn not_ready(mut self) -> Self {
        self.0.status = StatusCode::SERVICE_UNAVAILABLE;
        self.of_read()
    }
}

impl From<LockError> for Problem {
    fn from(error: LockError) -> Self {
        log(&error);
        Self::of_error(&error)
    }
}

impl Problem {
    /// An error's problem, without a word to the log.
    pub(crate) fn of_error(error: &LockError) -> Self {
        let kind = error.kind();
        let mut problem = Self::new(kind::of(kind), error.detail().to_owned());
        problem.0.retryable = error.is_transient();
        problem.0.applied = Some(error.applied());
        match kind {
            ErrorKind::InvalidArgument { field } => problem.0.field = Some(field.into()),
            ErrorKind::Limit { limit } => problem.0.limit = Some(limit),
            ErrorKind::InvariantViolated(invariant) => problem.0.invariant = Some(invariant.id()),
            _ => {}
        }
        problem
    }
}

/// The causes stay on this side: clients get the detail, operators get the chain.
fn log(error: &LockError) {
    let mut chain = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        chain.push_str(": ");
        chain.push_str(&cause.to_string());
        source = cause.source();
    }
    match error.kind() {
        // The service has reported it, as an incident, with what it was about.
        ErrorKind::InvariantViolated(_) => tracing::debug!(%error, chain, "failed"),
        ErrorKind::Contention | ErrorKind::NotLeader => tracing::warn!(%error, chain, "failed"),
        _ => tracing::debug!(kind = error.kind().name(), "refused"),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invariant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<&'a Option<InfoBody>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_token: Option<Option<u64>>,
}

impl Problem {
    fn document(&self) -> Document<'_> {
        let inner = &*self.0;
        Document {
            r#type: format!("urn:dlock:problem:{}", inner.kind),
            title: inner.title,
            status: inner.status.as_u16(),
            detail: &inner.detail,
            retryable: inner.retryable,
            applied: inner.applied.map(|applied| match applied {
                Applied::No => "no",
                Applied::Unknown => "unknown",
            }),
            field: inner.field.as_deref(),
            limit: inner.limit,
            invariant: inner.invariant,
            holder: inner.holder.as_ref(),
            current_token: inner.current_token,
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document().serialize(serializer)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.0.status;
        let mut response = reply::typed(status, "application/problem+json", &self);
        let headers = response.headers_mut();
        match status {
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // What else may come on this connection is the rest of that body.
            StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}
