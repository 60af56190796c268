//! `GET /v1/locks/inspect`.

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};

use utoipa::{
    IntoParams,
    openapi::{
        Required,
        path::{Parameter, ParameterIn},
    },
};

use crate::{
    app::App,
    fields::{self, Text},
    info::InfoBody,
    problem::Problem,
    query::Params,
    reply,
    spec::{failures::NotHeld, fields as wire, shapes::query_of},
};

/// The parameters, in the API's description.
pub(crate) struct InspectParams;

impl IntoParams for InspectParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![
            query_of::<wire::LockName>("name", Required::True, "The lock's name"),
            query_of::<wire::Namespace>(
                "namespace",
                Required::False,
                "Its namespace; without it, the server's default one",
            ),
        ]
    }
}

/// The live grant as others see it, or 404 `not-held`.
#[utoipa::path(
    get,
    path = "/v1/locks/inspect",
    tag = "locks",
    operation_id = "inspect",
    summary = "Look at a lock",
    description = "Read linearizably. The session is never shown.",
    params(InspectParams),
    responses((status = 200, description = "The live grant", body = InfoBody), NotHeld),
)]
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
