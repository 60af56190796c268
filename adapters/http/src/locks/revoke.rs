//! `POST /v1/locks/revoke`: an operator breaks a lock.

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::{FencingToken, LockOutcome, TokenFloor};
use dlock_ports::RevokeRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::App,
    fields::{self, Text, Whole},
    json::Json,
    problem::Problem,
    reply,
    spec::{failures::TokenMismatch, fields as wire},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revoke {
    #[schema(value_type = wire::LockName)]
    name: Option<Text>,
    #[schema(value_type = Option<wire::Namespace>)]
    namespace: Option<Text>,
    #[schema(value_type = wire::Owner)]
    actor: Option<Text>,
    #[schema(value_type = wire::Reason)]
    reason: Option<Text>,
    #[schema(value_type = Option<wire::FencingToken>)]
    expected_token: Option<Whole>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Revoked)]
pub(crate) struct RevokedBody {
    /// Whether a live grant was ended.
    revoked: bool,
    #[schema(value_type = Option<wire::FencingToken>, required)]
    previous_token: Option<u64>,
    #[schema(value_type = wire::TokenFloor)]
    new_token_floor: u64,
}

impl RevokedBody {
    /// What a revoke did.
    ///
    /// # Errors
    /// The problem that a mismatch is.
    pub(crate) fn new(outcome: LockOutcome) -> Result<Self, Problem> {
        let did = |previous: Option<FencingToken>, floor: TokenFloor| Self {
            revoked: previous.is_some(),
            previous_token: previous.map(FencingToken::get),
            new_token_floor: floor.get(),
        };
        match outcome {
            LockOutcome::Revoked { previous, floor } => Ok(did(Some(previous), floor)),
            LockOutcome::Free { floor } => Ok(did(None, floor)),
            LockOutcome::Mismatch { current } => Err(Problem::token_mismatch(current)),
        }
    }
}

/// Ends whatever grant is live, or only the expected one, and raises the key's floor above it.
/// `revoked: false`: nothing was held, and the floor was raised all the same (C2).
#[utoipa::path(
    post,
    path = "/v1/locks/revoke",
    tag = "locks",
    operation_id = "revoke",
    summary = "Break a lock",
    description = "Ends the live grant, with `expected_token` only if that is its token, and \
        raises the lock's token floor. `revoked` is false where nothing was held; the floor is \
        raised all the same. A repeat is harmless.",
    request_body = Revoke,
    responses(
        (status = 200, description = "The lock is free", body = RevokedBody),
        TokenMismatch,
    ),
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    Json(body): Json<Revoke>,
) -> Result<Response, Problem> {
    let key = fields::key(app.config(), body.name, body.namespace)?;
    let request = RevokeRequest {
        actor: fields::actor(body.actor)?,
        reason: fields::reason(body.reason)?,
        expected: fields::expected(body.expected_token)?,
    };
    let outcome = app.service().revoke(&key, request).await?;
    Ok(reply::json(StatusCode::OK, &RevokedBody::new(outcome)?))
}
