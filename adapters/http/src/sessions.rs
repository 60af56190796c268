//! Sessions: open, keep alive, look, close (C3).
//!
//! None of these breaks when its client hangs up: the service runs what it hands to the store in
//! tasks of its own, so dropping a handler gives up the answer only (trap 41).

use axum::{extract::State, http::StatusCode, response::Response};
use dlock_domain::{FencingToken, LockKey};
use serde::{Deserialize, Serialize};

use crate::{
    HttpConfig,
    app::App,
    fields::{self, Text, Whole},
    json::{Json, Object},
    problem::Problem,
    received::Received,
    reply,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    owner: Option<Text>,
    ttl_ms: Option<Whole>,
}

#[derive(Serialize)]
struct Opened<'a> {
    session_id: String,
    owner: &'a str,
    ttl_ms: u64,
    valid_ms: u64,
}

/// `POST /v1/sessions`. After a lost reply nobody knows the id: the lease ends by itself.
pub(crate) async fn open(
    State(app): State<App>,
    received: Received,
    Json(body): Json<Open>,
) -> Result<Response, Problem> {
    let owner = fields::owner(body.owner)?;
    let ttl = fields::ttl(body.ttl_ms)?;
    let session = app.service().open_session(owner, ttl).await?;
    let opened = Opened {
        session_id: session.id.expose(),
        owner: session.owner.as_str(),
        ttl_ms: session.ttl.as_millis(),
        valid_ms: received.valid_ms(session.client_deadline),
    };
    Ok(reply::json(StatusCode::CREATED, &opened))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepAlive {
    session_id: Option<Text>,
    held: Option<Vec<Object<Held>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Held {
    name: Option<Text>,
    namespace: Option<Text>,
    fencing_token: Option<Whole>,
}

impl Held {
    fn check(self, config: &HttpConfig) -> dlock_domain::Result<(LockKey, FencingToken)> {
        let key = fields::key(config, self.name, self.namespace)?;
        Ok((key, fields::token(self.fencing_token)?))
    }
}

#[derive(Serialize)]
struct Kept<'a> {
    session_id: String,
    ttl_ms: u64,
    valid_ms: u64,
    lost: Vec<Lost<'a>>,
}

#[derive(Serialize)]
struct Lost<'a> {
    name: &'a str,
    namespace: &'a str,
    fencing_token: u64,
}

/// `POST /v1/sessions/keepalive`. `valid_ms` counts for those of `held` that are not in `lost`, and
/// for nothing else (INV-03).
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
    let lost = kept.lost.iter().map(|(key, token)| Lost {
        name: key.name().as_str(),
        namespace: key.namespace().as_str(),
        fencing_token: token.get(),
    });
    let body = Kept {
        session_id: kept.session.id.expose(),
        ttl_ms: kept.session.ttl.as_millis(),
        valid_ms: received.valid_ms(kept.session.client_deadline),
        lost: lost.collect(),
    };
    Ok(reply::json(StatusCode::OK, &body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    session_id: Option<Text>,
}

#[derive(Serialize)]
struct Looked<'a> {
    session_id: String,
    owner: &'a str,
    ttl_ms: u64,
    valid_ms: u64,
    grants: Vec<Grant<'a>>,
}

#[derive(Serialize)]
struct Grant<'a> {
    name: &'a str,
    namespace: &'a str,
    fencing_token: u64,
    attempt_id: String,
}

/// `POST /v1/sessions/look`: reads, and extends nothing. A `POST` because the id is a secret and
/// belongs into no URL.
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

#[derive(Serialize)]
struct Closed {
    closed: bool,
}

/// `POST /v1/sessions/close`. `closed: false`: it was gone, perhaps by an earlier try.
pub(crate) async fn close(
    State(app): State<App>,
    Json(body): Json<Which>,
) -> Result<Response, Problem> {
    let id = fields::session(body.session_id)?;
    let closed = app.service().close_session(&id).await?;
    Ok(reply::json(StatusCode::OK, &Closed { closed }))
}
