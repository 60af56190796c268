//! What operators ask for: inspect, list, revoke, raise a floor.

use dlock_domain::{FencingToken, LockInfo, LockKey, LockOutcome, Namespace, Result, TokenFloor};
use dlock_ports::{ListRequest, Page, Raised, RevokeRequest};
use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Effect},
    core::Core,
    cursor,
    failure::Failure,
    info::InfoBody,
    reply::Reply,
    text::encoded,
};

/// Locks of one page: so many always fit into an answer that is read.
const MAX_PAGE: u16 = 500;

#[derive(Deserialize)]
struct Listed {
    locks: Vec<InfoBody>,
    next_cursor: Option<String>,
}

#[derive(Serialize)]
struct Revoke<'a> {
    name: &'a str,
    namespace: &'a str,
    actor: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_token: Option<u64>,
}

#[derive(Deserialize)]
struct Revoked {
    revoked: bool,
    previous_token: Option<u64>,
    new_token_floor: u64,
}

#[derive(Serialize)]
struct Raise<'a> {
    namespace: &'a str,
    at_least: u64,
}

#[derive(Deserialize)]
struct RaisedBody {
    namespace: String,
    token_floor: u64,
    grants_ended: u64,
}

impl Core {
    pub(crate) async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>> {
        let (name, namespace) = (encoded(key.name().as_str()), encoded(key.namespace().as_str()));
        let call = Call::get("/v1/locks/inspect", format!("name={name}&namespace={namespace}"));
        let read = |reply: &Reply| match reply.problem() {
            Some(problem) if reply.status == 404 && problem.kind() == "not-held" => Ok(None),
            _ => reply.read::<InfoBody>(200)?.check_of(key, reply).map(Some),
        };
        Ok(self.call(&call, read).await?.value)
    }

    pub(crate) async fn list(&self, request: &ListRequest) -> Result<Page> {
        let limit = request.limit.clamp(1, MAX_PAGE);
        let namespace = encoded(request.namespace.as_str());
        let mut query = format!("namespace={namespace}&limit={limit}");
        if !request.prefix.is_empty() {
            query = format!("{query}&prefix={}", encoded(&request.prefix));
        }
        if let Some(after) = &request.after {
            query = format!("{query}&cursor={}", encoded(&cursor::write(after)));
        }
        let call = Call::get("/v1/locks", query);
        Ok(self.call(&call, |reply| read_page(reply, request)).await?.value)
    }

    pub(crate) async fn revoke(
        &self,
        key: &LockKey,
        request: &RevokeRequest,
    ) -> Result<LockOutcome> {
        let body = Revoke {
            name: key.name().as_str(),
            namespace: key.namespace().as_str(),
            actor: request.actor.as_str(),
            reason: request.reason.as_str(),
            expected_token: request.expected.map(FencingToken::get),
        };
        let call = Call::post("/v1/locks/revoke", &body, Effect::Write)?;
        let outcome = self.call(&call, read_outcome).await?;
        // A free lock is what was wanted, whoever freed it. A mismatch says that nothing was
        // changed, and an earlier try may have changed it.
        outcome.certain(|outcome| matches!(outcome, LockOutcome::Mismatch { .. }))
    }

    pub(crate) async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
    ) -> Result<Raised> {
        let body = Raise { namespace: namespace.as_str(), at_least: at_least.get() };
        let call = Call::post("/v1/floor", &body, Effect::Write)?;
        let read = |reply: &Reply| {
            let raised: RaisedBody = reply.read(200)?;
            reply.expect(raised.namespace == namespace.as_str(), "it is another namespace's")?;
            let floor = reply.part(TokenFloor::new(raised.token_floor))?;
            reply.expect(floor >= at_least, "the floor is below what was asked")?;
            Ok(Raised { floor, grants_ended: raised.grants_ended })
        };
        Ok(self.call(&call, read).await?.value)
    }
}

fn read_page(reply: &Reply, request: &ListRequest) -> core::result::Result<Page, Failure> {
    let listed: Listed = reply.read(200)?;
    let mut locks: Vec<LockInfo> = Vec::with_capacity(listed.locks.len());
    for info in &listed.locks {
        let info = info.check(reply)?;
        let name = info.key.name();
        let fits = *info.key.namespace() == request.namespace
            && name.as_str().starts_with(&*request.prefix)
            && locks.last().map(|last| last.key.name()).or(request.after.as_ref()) < Some(name);
        // Also what keeps a listing from going round in circles.
        reply.expect(fits, "the list is out of order or of other locks")?;
        locks.push(info);
    }
    let last = locks.last().map(|last| last.key.name());
    let next = match &listed.next_cursor {
        None => None,
        Some(text) => {
            let next = cursor::read(text).or_else(|| last.cloned());
            let onward = next.as_ref() >= last && next.as_ref() > request.after.as_ref();
            reply.expect(onward, "the list does not go on")?;
            next
        }
    };
    Ok(Page { locks, next })
}

fn read_outcome(reply: &Reply) -> core::result::Result<LockOutcome, Failure> {
    let token = |number: Option<u64>| {
        number.map(|number| reply.part(FencingToken::from_user(number))).transpose()
    };
    if reply.status == 409
        && let Some(problem) = reply.problem()
        && problem.kind() == "token-mismatch"
    {
        return Ok(LockOutcome::Mismatch { current: token(problem.current_token)? });
    }
    let body: Revoked = reply.read(200)?;
    let floor = reply.part(TokenFloor::new(body.new_token_floor))?;
    match (body.revoked, token(body.previous_token)?) {
        (true, Some(previous)) => {
            reply.expect(!floor.admits(previous), "the floor is below the token")?;
            Ok(LockOutcome::Revoked { previous, floor })
        }
        (false, None) => Ok(LockOutcome::Free { floor }),
        _ => Err(reply.foreign("it is revoked and free at once")),
    }
}
