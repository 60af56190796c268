//! A grant, on its way to its holder.

use axum::{http::StatusCode, response::Response};
use dlock_domain::LockHandle;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{received::Received, reply, spec::fields as wire};

#[derive(Serialize, ToSchema)]
#[schema(as = Grant)]
pub(crate) struct GrantBody<'a> {
    #[schema(value_type = wire::LockName)]
    name: &'a str,
    #[schema(value_type = wire::Namespace)]
    namespace: &'a str,
    #[schema(value_type = wire::Owner)]
    owner: &'a str,
    #[schema(value_type = wire::SessionId)]
    session_id: String,
    #[schema(value_type = wire::FencingToken)]
    fencing_token: u64,
    #[schema(value_type = wire::TtlMs)]
    ttl_ms: u64,
    /// How long to believe in the grant, from when the request was received.
    valid_ms: u64,
}

impl<'a> GrantBody<'a> {
    /// A grant that may be believed in for so long.
    pub(crate) fn new(handle: &'a LockHandle, valid_ms: u64) -> Self {
        Self {
            name: handle.key.name().as_str(),
            namespace: handle.key.namespace().as_str(),
            owner: handle.owner.as_str(),
            session_id: handle.session.expose(),
            fencing_token: handle.token.get(),
            ttl_ms: handle.ttl.as_millis(),
            valid_ms,
        }
    }
}

/// The answer of acquire and renew.
pub(crate) fn answer(handle: &LockHandle, received: Received) -> Response {
    let body = GrantBody::new(handle, received.valid_ms(handle.client_deadline));
    reply::json(StatusCode::OK, &body)
}
