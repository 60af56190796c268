//! Whether the process lives, and whether it can do its work.

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::{ErrorKind, LockError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{app::App, problem::Problem, reply, spec::failures::NotReady};

#[derive(Serialize, ToSchema)]
pub(crate) struct Live {
    live: bool,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Ready)]
pub(crate) struct ReadyBody {
    pub(crate) ready: bool,
}

/// `GET /livez`: answers as long as the process does, whatever the store does.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "server",
    operation_id = "live",
    summary = "Whether the process lives",
    description = "Whatever the store does.",
    responses((status = 200, description = "It does", body = Live)),
)]
pub(crate) async fn live() -> Response {
    reply::json(StatusCode::OK, &Live { live: true })
}

/// `GET /readyz`: a real transaction of the store within a deadline; 503 if that fails, or if this
/// server is about to stop.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "server",
    operation_id = "ready",
    summary = "Whether the server can do its work",
    description = "Runs a real transaction of the store, within a deadline.",
    responses((status = 200, description = "It can", body = ReadyBody), NotReady),
)]
pub(crate) async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    check(&app).await.map_err(|error| Problem::from(error).not_ready())?;
    Ok(reply::json(StatusCode::OK, &ReadyBody { ready: true }))
}

/// The same question for whoever else asks it.
///
/// # Errors
/// Whatever the store answered, or `Draining`.
pub(crate) async fn check(app: &App) -> dlock_domain::Result<()> {
    let config = app.config();
    if config.draining.is_cancelled() {
        Err(LockError::new(ErrorKind::Draining, "this server is shutting down"))
    } else {
        tokio::time::timeout(config.ready_timeout, config.ready.check())
            .await
            .unwrap_or_else(|_| Err(LockError::contention("the store did not answer in time")))
    }
}
