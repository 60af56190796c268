//! Sessions: open, keep alive, look, close (C3).
//!
//! None of these breaks when its client hangs up: the service runs what it hands to the store in
//! tasks of its own, so dropping a handler gives up the answer only (trap 41).

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::{FencingToken, LockKey, Session};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    HttpConfig,
    app::App,
    fields::{self, Text, Whole},
    json::{Json, Object},
    problem::Problem,
    received::Received,
    reply,
    spec::{failures::Gone, fields as wire},
};

/// These routes, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(open))
        .routes(routes!(keep_alive))
        .routes(routes!(look))
        .routes(routes!(close))
}

#[derive(Deserialize, ToSchema)]
#[schema(as = OpenSession)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    #[schema(value_type = wire::Owner)]
    owner: Option<Text>,
    #[schema(value_type = wire::TtlMs)]
    ttl_ms: Option<Whole>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenedSession)]
pub(crate) struct Opened<'a> {
    #[schema(value_type = wire::SessionId)]
    session_id: String,
    #[schema(value_type = wire::Owner)]
    owner: &'a str,
    #[schema(value_type = wire::TtlMs)]
    ttl_ms: u64,
    /// How long to believe in the lease, from when the request was received.
    valid_ms: u64,
}

impl<'a> Opened<'a> {
    /// A session whose lease may be believed in for so long.
    pub(crate) fn new(session: &'a Session, valid_ms: u64) -> Self {
        Self {
            session_id: session.id.expose(),
            owner: session.owner.as_str(),
            ttl_ms: session.ttl.as_millis(),
            valid_ms,
        }
    }
}

/// `POST /v1/sessions`. After a lost reply nobody knows the id: the lease ends by itself.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    tag = "sessions",
    operation_id = "open_session",
    summary = "Open a session",
    description = "A store may round `ttl_ms` up and answers what it made of it. After a lost \
        answer nobody knows the id, and the lease ends by itself.",
    request_body = Open,
    responses((status = 201, description = "The session is open", body = Opened<'_>)),
)]
pub(crate) async fn open(
    State(app): State<App>,
    received: Received,
    Json(body): Json<Open>,
) -> Result<Response, Problem> {
    let owner = fields::owner(body.owner)?;
    let ttl = fields::ttl(body.ttl_ms)?;
    let session = app.service().open_session(owner, ttl).await?;
    let opened = Opened::new(&session, received.valid_ms(session.client_deadline));
    Ok(reply::json(StatusCode::CREATED, &opened))
}

#[derive(Deserialize, ToSchema)]
#[schema(as = KeepAlive)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepAlive {
    #[schema(value_type = wire::SessionId)]
    session_id: Option<Text>,
    /// The grants whose deadlines this call is to move.
    #[schema(value_type = Option<Vec<Held>>)]
    held: Option<Vec<Object<Held>>>,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = HeldGrant)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    #[schema(value_type = wire::LockName)]
    name: Option<Text>,
    #[schema(value_type = Option<wire::Namespace>)]
    namespace: Option<Text>,
    #[schema(value_type = wire::FencingToken)]
    fencing_token: Option<Whole>,
}

impl Held {
    fn check(self, config: &HttpConfig) -> dlock_domain::Result<(LockKey, FencingToken)> {
        let key = fields::key(config, self.name, self.namespace)?;
        Ok((key, fields::token(self.fencing_token)?))
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = KeptSession)]
pub(crate) struct Kept<'a> {
    #[schema(value_type = wire::SessionId)]
    session_id: String,
    #[schema(value_type = wire::TtlMs)]
    ttl_ms: u64,
    /// How long to believe in the grants that were listed and are not lost, from when the request
    /// was received.
    valid_ms: u64,
    /// The grants that were listed and are not there any more.
    lost: Vec<Lost<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = LostGrant)]
pub(crate) struct Lost<'a> {
    #[schema(value_type = wire::LockName)]
    name: &'a str,
    #[schema(value_type = wire::Namespace)]
    namespace: &'a str,
    #[schema(value_type = wire::FencingToken)]
    fencing_token: u64,
}

impl<'a> Kept<'a> {
    /// A session whose lease may be believed in for so long, but for the lost ones.
    pub(crate) fn new(kept: &'a dlock_ports::Kept, valid_ms: u64) -> Self {
        let lost = kept.lost.iter().map(|(key, token)| Lost {
            name: key.name().as_str(),
            namespace: key.namespace().as_str(),
            fencing_token: token.get(),
        });
        Self {
            session_id: kept.session.id.expose(),
            ttl_ms: kept.session.ttl.as_millis(),
            valid_ms,
            lost: lost.collect(),
        }
    }
}

/// `POST /v1/sessions/keepalive`. `valid_ms` counts for those of `held` that are not in `lost`, and
/// for nothing else (INV-03).
#[utoipa::path(
    post,
    path = "/v1/sessions/keepalive",
    tag = "sessions",
    operation_id = "keep_session",
    summary = "Keep a session alive",
    description = "Extends the lease and says which of `held` are lost. `valid_ms` counts for \
        the listed grants that are not lost, and for nothing else; `held` may be split over \
        several calls.",
    request_body = KeepAlive,
    responses((status = 200, description = "The lease is extended", body = Kept<'_>), Gone),
)]
pub(crate) async fn keep_alive(
    State(app): State<App>,
    received: Received,
    Json(body): Json<KeepAlive>,
) -> Result<Response, Problem> {
    let id = fields::session(body.session_id)?;
    let mut held = Vec::new();
    for (at, Object(entry)) in body.held.unwrap_or_default().into_iter().enumerate() {
        let grant = entry.check(app.config());
        held.push(grant.map_err(|error| Problem::from(error).within("held", at))?);
    }
    let kept = app.service().keep_session(&id, &held).await?;
    let body = Kept::new(&kept, received.valid_ms(kept.session.client_deadline));
    Ok(reply::json(StatusCode::OK, &body))
}

#[derive(Deserialize, ToSchema)]
#[schema(as = WhichSession)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    #[schema(value_type = wire::SessionId)]
    session_id: Option<Text>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = LookedSession)]
pub(crate) struct Looked<'a> {
    #[schema(value_type = wire::SessionId)]
    session_id: String,
    #[schema(value_type = wire::Owner)]
    owner: &'a str,
    #[schema(value_type = wire::TtlMs)]
    ttl_ms: u64,
    /// How long to believe in the lease, from when the request was received.
    valid_ms: u64,
    grants: Vec<Grant<'a>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SessionGrant)]
pub(crate) struct Grant<'a> {
    #[schema(value_type = wire::LockName)]
    name: &'a str,
    #[schema(value_type = wire::Namespace)]
    namespace: &'a str,
    #[schema(value_type = wire::FencingToken)]
    fencing_token: u64,
    #[schema(value_type = wire::AttemptId)]
    attempt_id: String,
}

/// `POST /v1/sessions/look`: reads, and extends nothing. A `POST` because the id is a secret and
/// belongs into no URL.
#[utoipa::path(
    post,
    path = "/v1/sessions/look",
    tag = "sessions",
    operation_id = "look_session",
    summary = "Look at a session and what it holds",
    description = "Reads and extends nothing. A `POST` because the id is a secret and belongs \
        into no URL.",
    request_body = Which,
    responses((status = 200, description = "The session and its grants", body = Looked<'_>), Gone),
)]
pub(crate) async fn look(
    State(app): State<App>,
    received: Received,
    Json(body): Json<Which>,
) -> Result<Response, Problem> {
    let id = fields::session(body.session_id).map_err(|error| Problem::from(error).of_read())?;
    let (session, grants) =
        app.service().look_session(&id).await.map_err(|error| Problem::from(error).of_read())?;
    let grants = grants.iter().map(|grant| Grant {
        name: grant.key.name().as_str(),
        namespace: grant.key.namespace().as_str(),
        fencing_token: grant.token.get(),
        attempt_id: grant.attempt.to_string(),
    });
    let looked = Looked {
        session_id: session.id.expose(),
        owner: session.owner.as_str(),
        ttl_ms: session.ttl.as_millis(),
        valid_ms: received.valid_ms(session.client_deadline),
        grants: grants.collect(),
    };
    Ok(reply::json(StatusCode::OK, &looked))
}

#[derive(Serialize, ToSchema)]
#[schema(as = ClosedSession)]
pub(crate) struct Closed {
    /// False where the session was gone, perhaps by an earlier try.
    pub(crate) closed: bool,
}

/// `POST /v1/sessions/close`. `closed: false`: it was gone, perhaps by an earlier try.
#[utoipa::path(
    post,
    path = "/v1/sessions/close",
    tag = "sessions",
    operation_id = "close_session",
    summary = "Close a session and free its locks",
    description = "All of them in one operation of the store.",
    request_body = Which,
    responses((status = 200, description = "The session is closed", body = Closed)),
)]
pub(crate) async fn close(
    State(app): State<App>,
    Json(body): Json<Which>,
) -> Result<Response, Problem> {
    let id = fields::session(body.session_id)?;
    let closed = app.service().close_session(&id).await?;
    Ok(reply::json(StatusCode::OK, &Closed { closed }))
}
