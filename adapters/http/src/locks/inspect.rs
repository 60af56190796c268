//! `GET /v1/locks/inspect`.

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};

use crate::{
    app::App,
    fields::{self, Text},
    info::InfoBody,
    problem::Problem,
    query::Params,
    reply,
};

/// The live grant as others see it, or 404 `not-held`.
pub(crate) async fn inspect(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    look(&app, query.as_deref()).await.map_err(Problem::of_read)
}

async fn look(app: &App, query: Option<&str>) -> Result<Response, Problem> {
    let mut params = Params::parse(query)?;
    let (name, namespace) = (params.require("name")?, params.take("namespace"));
    params.finish()?;
    let key = fields::key(app.config(), Some(Text(name)), namespace.map(Text))?;
    match app.service().inspect(&key).await? {
        Some(info) => Ok(reply::json(StatusCode::OK, &InfoBody::new(&info, app.clock().wall()))),
        None => Err(Problem::not_held()),
    }
}
