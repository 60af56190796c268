//! A grant, on its way to its holder.

use axum::{http::StatusCode, response::Response};
use dlock_domain::LockHandle;
use serde::Serialize;

use crate::{received::Received, reply};

#[derive(Serialize)]
struct GrantBody<'a> {
    name: &'a str,
    namespace: &'a str,
    owner: &'a str,
    session_id: String,
    fencing_token: u64,
    ttl_ms: u64,
    valid_ms: u64,
}

/// The answer of acquire and renew.
pub(crate) fn answer(handle: &LockHandle, received: Received) -> Response {
    let body = GrantBody {
        name: handle.key.name().as_str(),
        namespace: handle.key.namespace().as_str(),
        owner: handle.owner.as_str(),
        session_id: handle.session.expose(),
        fencing_token: handle.token.get(),
        ttl_ms: handle.ttl.as_millis(),
        valid_ms: received.valid_ms(handle.client_deadline),
    };
    reply::json(StatusCode::OK, &body)
}
