//! Failures as the API's description has them: one response a status and set of kinds.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use utoipa::{
    IntoResponses,
    openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder},
};

use super::{headers, problem};
use crate::problem::kind::{self, Kind};

/// A response that tells of a failure.
pub(crate) struct Failure {
    /// Its name among the document's responses.
    pub(crate) name: &'static str,
    status: StatusCode,
    description: &'static str,
    /// None: answered by the HTTP library, with an empty body.
    kinds: &'static [Kind],
    /// Members that these kinds always have, besides those of every problem.
    members: &'static [&'static str],
    headers: &'static [&'static str],
}

impl Failure {
    pub(crate) fn status_text(&self) -> String {
        self.status.as_u16().to_string()
    }

    pub(crate) fn response(&self) -> Response {
        let mut response = ResponseBuilder::new().description(self.description);
        for &name in self.headers {
            response = response.header_ref(name, headers::reference(name));
        }
        if self.kinds.is_empty() {
            return response.build();
        }
        for &name in headers::EVERYWHERE {
            response = response.header_ref(name, headers::reference(name));
        }
        let schema = problem::of(self.status, self.kinds, self.members);
        let content = ContentBuilder::new().schema(Some(schema)).build();
        response.content("application/problem+json", content).build()
    }
}

macro_rules! failures {
    ($($constant:ident = $name:literal, $status:ident, $description:literal,
        $kinds:expr, $members:expr, $headers:expr;)*) => {
        $(pub(crate) const $constant: Failure = Failure {
            name: $name,
            status: StatusCode::$status,
            description: $description,
            kinds: $kinds,
            members: $members,
            headers: $headers,
        };)*
        /// All of them.
        pub(crate) const ALL: &[Failure] = &[$($constant),*];
    };
}

failures! {
    BAD_HOST = "BadHost", BAD_REQUEST, "Not exactly one host",
        &[kind::MALFORMED_HOST], &[], &[];
    BAD_QUERY = "BadQuery", BAD_REQUEST,
        "A query that cannot be decoded, or not exactly one host",
        &[kind::MALFORMED_QUERY, kind::MALFORMED_HOST], &[], &[];
    BAD_BODY = "BadBody", BAD_REQUEST, "A body that is not JSON, or not exactly one host",
        &[kind::MALFORMED_BODY, kind::MALFORMED_HOST], &[], &[];
    DENIED = "Denied", FORBIDDEN, "Not allowed; of renew and release: the token is known to be another session's",
        &[kind::DENIED], &[], &[];
    NOT_HELD = "NotHeld", NOT_FOUND, "Nobody holds the lock", &[kind::NOT_HELD], &[], &[];
    NO_METRICS = "NoMetrics", NOT_FOUND, "This server keeps no metrics",
        &[kind::NOT_FOUND], &[], &[];
    WRONG_METHOD = "WrongMethod", METHOD_NOT_ALLOWED, "Another method on this path",
        &[kind::METHOD_NOT_ALLOWED], &[], &["allow"];
    TOO_SLOW = "TooSlow", REQUEST_TIMEOUT, "The body did not arrive in time",
        &[kind::TOO_SLOW], &[], &["connection"];
    NOT_GRANTED = "NotGranted", CONFLICT, "Somebody else holds the lock",
        &[kind::NOT_GRANTED], &["holder"], &[];
    TOKEN_MISMATCH = "TokenMismatch", CONFLICT,
        "The live grant is not the expected one; nothing was changed",
        &[kind::TOKEN_MISMATCH], &["current_token"], &[];
    GONE = "Gone", GONE, "The session or the grant is not there any more",
        &[kind::LOCK_LOST, kind::SESSION_EXPIRED], &[], &[];
    TOO_LARGE = "TooLarge", PAYLOAD_TOO_LARGE, "The body is over the limit",
        &[kind::TOO_LARGE], &["limit"], &["connection"];
    WRONG_TYPE = "WrongType", UNSUPPORTED_MEDIA_TYPE,
        "The body is not `application/json`, or compressed",
        &[kind::WRONG_TYPE], &[], &[];
    MISDIRECTED = "Misdirected", MISDIRECTED_REQUEST,
        "A host that this server does not answer for: it listens on loopback only",
        &[kind::MISDIRECTED], &[], &[];
    INVALID = "Invalid", UNPROCESSABLE_ENTITY, "A field or parameter is wrong, missing or unknown",
        &[kind::INVALID_ARGUMENT], &[], &[];
    LIMITED = "Limited", TOO_MANY_REQUESTS, "A limit is reached: come back later",
        &[kind::LIMIT], &["limit"], &["retry-after"];
    HEAD_TOO_LARGE = "HeadTooLarge", REQUEST_HEADER_FIELDS_TOO_LARGE,
        "Request line and headers are over 16 KiB, or there are more than 100 headers. Empty, and \
         without the usual headers; the connection is closed",
        &[], &[], &[];
    FAILED = "Failed", INTERNAL_SERVER_ERROR,
        "A promise of the lock does not hold, which is an incident, or the server made a mistake",
        &[kind::INVARIANT_VIOLATED, kind::INTERNAL], &[], &[];
    UNSUPPORTED = "Unsupported", NOT_IMPLEMENTED, "The store cannot do that",
        &[kind::UNSUPPORTED], &[], &[];
    UNAVAILABLE = "Unavailable", SERVICE_UNAVAILABLE,
        "The store or this server cannot serve the call just now: repeat, elsewhere or later",
        &[kind::CONTENTION, kind::NOT_LEADER, kind::DRAINING], &[], &["retry-after"];
    NOT_READY = "NotReady", SERVICE_UNAVAILABLE,
        "The store does not answer as it should, or this server is about to stop",
        &[
            kind::CONTENTION, kind::NOT_LEADER, kind::DRAINING, kind::LOCK_LOST,
            kind::SESSION_EXPIRED, kind::INVALID_ARGUMENT, kind::LIMIT, kind::DENIED,
            kind::UNSUPPORTED, kind::INVARIANT_VIOLATED,
        ],
        &[], &["retry-after"];
}

/// What every route can answer.
pub(crate) const AROUND: &[Failure] = &[WRONG_METHOD, MISDIRECTED, HEAD_TOO_LARGE, FAILED];

/// What every call with a body can answer.
pub(crate) const OF_BODIES: &[Failure] = &[TOO_SLOW, TOO_LARGE, WRONG_TYPE];

/// What every call of the service can answer.
pub(crate) const OF_THE_SERVICE: &[Failure] = &[DENIED, INVALID, LIMITED, UNSUPPORTED, UNAVAILABLE];

/// Makes a type that handlers name among their responses.
macro_rules! of_a_handler {
    ($($name:ident = $failure:ident;)*) => {
        $(
            #[doc = concat!("`", stringify!($failure), "`, for a handler's description.")]
            pub(crate) struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    let reference = Ref::from_response_name($failure.name);
                    BTreeMap::from([($failure.status_text(), RefOr::Ref(reference))])
                }
            }
        )*
    };
}

of_a_handler! {
    NotHeld = NOT_HELD;
    NoMetrics = NO_METRICS;
    NotGranted = NOT_GRANTED;
    TokenMismatch = TOKEN_MISMATCH;
    Gone = GONE;
    NotReady = NOT_READY;
}
