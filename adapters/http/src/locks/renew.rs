//! `POST /v1/locks/renew`.

use axum::{extract::State, response::Response};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    fields::{self, Text, Whole},
    json::Json,
    locks::grant::{self, GrantBody},
    problem::Problem,
    received::Received,
    spec::{failures::Gone, fields as wire},
};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew {
    #[schema(value_type = wire::LockName)]
    name: Option<Text>,
    #[schema(value_type = Option<wire::Namespace>)]
    namespace: Option<Text>,
    #[schema(value_type = wire::FencingToken)]
    fencing_token: Option<Whole>,
    #[schema(value_type = wire::SessionId)]
    session_id: Option<Text>,
}

/// Extends the lease behind a grant. A token alone is no authority: the session's id goes with it.
#[utoipa::path(
    post,
    path = "/v1/locks/renew",
    tag = "locks",
    operation_id = "renew",
    summary = "Extend the lease behind a grant",
    description = "The token stays the same.",
    request_body = Renew,
    responses((status = 200, description = "The lease is extended", body = GrantBody<'_>), Gone),
)]
pub(crate) async fn renew(
    State(app): State<App>,
    received: Received,
    Json(body): Json<Renew>,
) -> Result<Response, Problem> {
    let key = fields::key(app.config(), body.name, body.namespace)?;
    let token = fields::token(body.fencing_token)?;
    let session = fields::session(body.session_id)?;
    let handle = app.service().renew(&key, token, &session).await?;
    Ok(grant::answer(&handle, received))
}
