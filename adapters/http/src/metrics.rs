//! `GET /metrics`: Prometheus.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};

use crate::{app::App, problem::Problem, spec::failures::NoMetrics};

/// The text format, whatever the client would accept: every reader of metrics knows this one.
const MEDIA: &str = "text/plain; version=0.0.4";

/// What the application's handle writes (C4).
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    operation_id = "metrics",
    summary = "Metrics for Prometheus",
    description = "The text format, version 0.0.4.",
    responses(
        (status = 200, description = "All metrics", content_type = "text/plain; version=0.0.4",
            body = String),
        NoMetrics,
    ),
)]
pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let write = app.config().metrics.as_ref().ok_or_else(Problem::no_metrics)?;
    let mut response = Response::new(Body::from(write()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
    Ok(response)
}
