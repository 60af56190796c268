//! `POST /v1/locks/renew`.

use axum::{extract::State, response::Response};
use serde::Deserialize;

use crate::{
    app::App,
    fields::{self, Text, Whole},
    json::Json,
    locks::grant,
    problem::Problem,
    received::Received,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew {
    name: Option<Text>,
    namespace: Option<Text>,
    fencing_token: Option<Whole>,
    session_id: Option<Text>,
}

/// Extends the lease behind a grant. A token alone is no authority: the session's id goes with it.
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
