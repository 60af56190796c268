//! `POST /v1/locks/release`: of a grant by its token, or of whatever an attempt was granted.

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::LockError;
use dlock_ports::{Current, SessionRef};
use serde::{Deserialize, Serialize};

use crate::{
    app::App,
    fields::{self, Text, Whole},
    json::Json,
    problem::Problem,
    reply,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Release {
    name: Option<Text>,
    namespace: Option<Text>,
    session_id: Option<Text>,
    fencing_token: Option<Whole>,
    attempt_id: Option<Text>,
}

#[derive(Serialize)]
struct ReleasedBody {
    released: bool,
    current: &'static str,
}

/// Releases, then looks. With `attempt_id` the attempt is settled for good: it holds nothing and
/// will never be granted (trap 12).
pub(crate) async fn release(
    State(app): State<App>,
    Json(body): Json<Release>,
) -> Result<Response, Problem> {
    let key = fields::key(app.config(), body.name, body.namespace)?;
    let session = fields::session(body.session_id)?;
    let attempt = fields::attempt(body.attempt_id)?;
    let outcome = match (body.fencing_token, attempt) {
        (token @ Some(_), None) => {
            app.service().release(&key, fields::token(token)?, &session).await?
        }
        (None, Some(attempt)) => {
            app.service().forget(&key, &SessionRef::Id(session), attempt).await?
        }
        (Some(_), Some(_)) => {
            let detail = "does not go together with fencing_token";
            return Err(LockError::invalid("attempt_id", detail).into());
        }
        (None, None) => {
            let detail = "is missing, and so is attempt_id";
            return Err(LockError::invalid("fencing_token", detail).into());
        }
    };
    let current = match outcome.current {
        Current::None => "none",
        Current::Same => "same",
        Current::Other => "other",
        // The release was answered, the look was not: the answer must not hide the former.
        Current::Unknown => "unknown",
    };
    Ok(reply::json(StatusCode::OK, &ReleasedBody { released: outcome.released, current }))
}
