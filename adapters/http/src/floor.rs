//! `POST /v1/floor`: after a restore, every token is greater than all that were granted before.

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::Namespace;
use dlock_ports::Raised;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::App,
    fields::{self, Text, Whole},
    json::Json,
    problem::Problem,
    reply,
    spec::fields as wire,
};

#[derive(Deserialize, ToSchema)]
#[schema(as = RaiseFloor)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raise {
    #[schema(value_type = Option<wire::Namespace>)]
    namespace: Option<Text>,
    #[schema(value_type = wire::FloorWish)]
    at_least: Option<Whole>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RaisedFloor)]
pub(crate) struct RaisedBody<'a> {
    #[schema(value_type = wire::Namespace)]
    namespace: &'a str,
    #[schema(value_type = wire::TokenFloor)]
    token_floor: u64,
    grants_ended: u64,
}

impl<'a> RaisedBody<'a> {
    /// What a raise did.
    pub(crate) fn new(namespace: &'a Namespace, raised: &Raised) -> Self {
        Self {
            namespace: namespace.as_str(),
            token_floor: raised.floor.get(),
            grants_ended: raised.grants_ended,
        }
    }
}

/// Raises a namespace's floor and ends its live grants, in one transaction of the store (INV-04).
/// A client that hangs up gives up the answer only; a repeat is harmless.
#[utoipa::path(
    post,
    path = "/v1/floor",
    tag = "floors",
    operation_id = "raise_floor",
    summary = "Raise a namespace's token floor",
    description = "Afterwards every token granted in the namespace is greater than `token_floor`, \
        which is at least what was asked. Ends all live grants of the namespace, in the same \
        transaction, and says how many. For use after the store was restored from a backup.",
    request_body = Raise,
    responses((status = 200, description = "The floor is raised", body = RaisedBody<'_>)),
)]
pub(crate) async fn raise(
    State(app): State<App>,
    Json(body): Json<Raise>,
) -> Result<Response, Problem> {
    let namespace = fields::namespace(app.config(), body.namespace)?;
    let at_least = fields::floor(body.at_least)?;
    let raised = app.service().raise_floor(&namespace, at_least).await?;
    Ok(reply::json(StatusCode::OK, &RaisedBody::new(&namespace, &raised)))
}
