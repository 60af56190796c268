//! Answers that are no errors.

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::problem::Problem;

/// A JSON body with this status.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    typed(status, "application/json", body)
}

/// A JSON body of this media type.
pub(crate) fn typed(status: StatusCode, media: &'static str, body: &impl Serialize) -> Response {
    let Ok(bytes) = serde_json::to_vec(body) else {
        // Our own bodies are texts and numbers, which always serialise. If one does not, what was
        // asked for may have been done all the same: that is what a panic's problem says.
        return Problem::panicked().into_response();
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}
