//! `POST /v1/locks/release`: of a grant by its token, or of whatever an attempt was granted.

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::LockError;
use dlock_ports::{Current, Released, SessionRef};
use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use crate::{
    app::App,
    fields::{self, Text, Whole},
    json::Json,
    problem::Problem,
    reply,
    spec::{
        failures::Gone,
        fields as wire,
        shapes::{Members, closed, either, needs},
    },
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

impl PartialSchema for Release {
    fn schema() -> RefOr<Schema> {
        let form = |what: &str| {
            closed()
                .title(Some(what))
                .must::<wire::LockName>("name")
                .may::<wire::Namespace>("namespace")
                .must::<wire::SessionId>("session_id")
        };
        either(
            form("a grant by its token")
                .must::<wire::FencingToken>("fencing_token")
                .never("attempt_id"),
            form("whatever an attempt was granted")
                .must::<wire::AttemptId>("attempt_id")
                .never("fencing_token"),
        )
    }
}

impl ToSchema for Release {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        needs::<wire::LockName>(schemas);
        needs::<wire::Namespace>(schemas);
        needs::<wire::SessionId>(schemas);
        needs::<wire::FencingToken>(schemas);
        needs::<wire::AttemptId>(schemas);
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Released)]
pub(crate) struct ReleasedBody {
    /// Whether this call ended a grant. False may also be the repeat of a release that did happen.
    released: bool,
    /// Who holds the lock afterwards: nobody, this session, another one, or that could not be seen.
    #[schema(value_type = Holder)]
    current: &'static str,
}

impl ReleasedBody {
    /// What a release found.
    pub(crate) fn new(outcome: &Released) -> Self {
        let current = match outcome.current {
            Current::None => "none",
            Current::Same => "same",
            Current::Other => "other",
            // The release was answered, the look was not: the answer must not hide the former.
            Current::Unknown => "unknown",
        };
        Self { released: outcome.released, current }
    }
}

/// The words of `current`.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its schema is used")]
enum Holder {
    None,
    Same,
    Other,
    Unknown,
}

/// Releases, then looks. With `attempt_id` the attempt is settled for good: it holds nothing and
/// will never be granted (trap 12).
#[utoipa::path(
    post,
    path = "/v1/locks/release",
    tag = "locks",
    operation_id = "release",
    summary = "Release a grant, or settle an attempt",
    description = "With `attempt_id` the attempt is settled for good: it holds nothing and will \
        never be granted.",
    request_body = Release,
    responses(
        (status = 200, description = "The store has answered", body = ReleasedBody),
        Gone,
    ),
)]
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
    Ok(reply::json(StatusCode::OK, &ReleasedBody::new(&outcome)))
}
