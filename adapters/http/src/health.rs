//! Whether the process lives, and whether it can do its work.

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::{ErrorKind, LockError};
use serde_json::json;

use crate::{app::App, problem::Problem, reply};

/// `GET /livez`: answers as long as the process does, whatever the store does.
pub(crate) async fn live() -> Response {
    reply::json(StatusCode::OK, &json!({ "live": true }))
}

/// `GET /readyz`: a real transaction of the store within a deadline; 503 if that fails, or if this
/// server is about to stop.
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    let config = app.config();
    let answer = if config.draining.is_cancelled() {
        Err(LockError::new(ErrorKind::Draining, "this server is shutting down"))
    } else {
        tokio::time::timeout(config.ready_timeout, config.ready.check())
            .await
            .unwrap_or_else(|_| Err(LockError::contention("the store did not answer in time")))
    };
    answer.map_err(|error| Problem::from(error).not_ready())?;
    Ok(reply::json(StatusCode::OK, &json!({ "ready": true })))
}
