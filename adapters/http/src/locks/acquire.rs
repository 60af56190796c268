//! `POST /v1/locks/acquire`: the only call that waits.

use core::time::Duration;

use axum::{extract::State, response::Response};
use dlock_domain::LockError;
use dlock_ports::{AcquireRequest, Acquired, SessionRef};
use serde::Deserialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema},
};

use crate::{
    HttpConfig,
    app::App,
    fields::{self, Text, Whole},
    info::InfoBody,
    json::Json,
    locks::grant::{self, GrantBody},
    problem::Problem,
    received::Received,
    spec::{
        failures::{Gone, NotGranted},
        fields as wire,
        shapes::{Members, closed, either, needs},
    },
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Acquire {
    name: Option<Text>,
    namespace: Option<Text>,
    session_id: Option<Text>,
    owner: Option<Text>,
    ttl_ms: Option<Whole>,
    max_wait_ms: Option<Whole>,
    attempt_id: Option<Text>,
}

impl PartialSchema for Acquire {
    fn schema() -> RefOr<Schema> {
        let form = |what: &str| -> ObjectBuilder {
            closed()
                .title(Some(what))
                .must::<wire::LockName>("name")
                .may::<wire::Namespace>("namespace")
                .may::<wire::MaxWaitMs>("max_wait_ms")
                .may::<wire::AttemptId>("attempt_id")
        };
        either(
            form("under an open session")
                .must::<wire::SessionId>("session_id")
                .never("owner")
                .never("ttl_ms"),
            form("under a session of the lock's own")
                .must::<wire::Owner>("owner")
                .must::<wire::TtlMs>("ttl_ms")
                .never("session_id"),
        )
    }
}

impl ToSchema for Acquire {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        needs::<wire::LockName>(schemas);
        needs::<wire::Namespace>(schemas);
        needs::<wire::MaxWaitMs>(schemas);
        needs::<wire::AttemptId>(schemas);
        needs::<wire::SessionId>(schemas);
        needs::<wire::Owner>(schemas);
        needs::<wire::TtlMs>(schemas);
    }
}

/// Grants the lock, or says who has it after at most `max_wait_ms`.
///
/// When the client hangs up this future is dropped, and with it the service's: that is intended.
/// The service then settles what the store may have granted, or keeps it for a repeat if the
/// client chose the attempt's id (C2, INV-09). A reply that never arrives is the same to a client
/// as one that was never sent (C07).
#[utoipa::path(
    post,
    path = "/v1/locks/acquire",
    tag = "locks",
    operation_id = "acquire",
    summary = "Acquire a lock",
    description = "Waits at most `max_wait_ms`. A call with an `attempt_id` may be repeated: it \
        finds its own grant again, as long as that lives. A call without one whose client hangs \
        up leaves nothing held.",
    request_body(
        content = Acquire,
        example = json!({"name": "nightly", "owner": "me", "ttl_ms": 30_000}),
    ),
    responses(
        (status = 200, description = "The lock is granted", body = GrantBody<'_>),
        NotGranted,
        Gone,
    ),
)]
pub(crate) async fn acquire(
    State(app): State<App>,
    received: Received,
    Json(body): Json<Acquire>,
) -> Result<Response, Problem> {
    let request = check(app.config(), body)?;
    let _waits = match request.max_wait {
        Duration::ZERO => None,
        _ => Some(app.long_poll()?),
    };
    match app.service().acquire(request).await? {
        Acquired::Granted(handle) => Ok(grant::answer(&handle, received)),
        Acquired::NotGranted { holder } => {
            let now = app.clock().wall();
            Err(Problem::not_granted(holder.map(|info| InfoBody::new(&info, now))))
        }
    }
}

fn check(config: &HttpConfig, body: Acquire) -> dlock_domain::Result<AcquireRequest> {
    Ok(AcquireRequest {
        key: fields::key(config, body.name, body.namespace)?,
        session: for_whom(body.session_id, body.owner, body.ttl_ms)?,
        attempt: fields::attempt(body.attempt_id)?,
        max_wait: fields::max_wait(body.max_wait_ms)?,
    })
}

/// An open session, or the owner and lifetime of one for this lock alone; not both, not neither.
fn for_whom(
    id: Option<Text>,
    owner: Option<Text>,
    ttl: Option<Whole>,
) -> dlock_domain::Result<SessionRef> {
    match (id, owner, ttl) {
        (Some(id), None, None) => fields::session(Some(id)).map(SessionRef::Id),
        (Some(_), Some(_), _) => {
            Err(LockError::invalid("owner", "does not go together with session_id"))
        }
        (Some(_), None, Some(_)) => {
            Err(LockError::invalid("ttl_ms", "does not go together with session_id"))
        }
        (None, None, None) => {
            Err(LockError::invalid("session_id", "is missing, and so are owner and ttl_ms"))
        }
        (None, owner, ttl) => {
            Ok(SessionRef::Private { owner: fields::owner(owner)?, ttl: fields::ttl(ttl)? })
        }
    }
}
