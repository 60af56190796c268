//! Sessions: open, look, close.

use std::sync::Arc;

use dlock_domain::{
    AttemptId, FencingToken, LockKey, LockName, Namespace, OwnerId, Result, Session, SessionId, Ttl,
};
use dlock_ports::HeldGrant;
use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Effect, MAX_LOOK},
    core::Core,
    failure::Failure,
    private::Private,
    reply::Reply,
    settle::Loose,
};

#[derive(Serialize)]
struct Open<'a> {
    owner: &'a str,
    ttl_ms: u64,
}

#[derive(Deserialize)]
struct Opened {
    session_id: String,
    owner: String,
    ttl_ms: u64,
    valid_ms: u64,
}

#[derive(Serialize)]
struct Which {
    session_id: String,
}

#[derive(Deserialize)]
struct Looked {
    session_id: String,
    owner: String,
    ttl_ms: u64,
    valid_ms: u64,
    grants: Vec<Grant>,
}

#[derive(Deserialize)]
struct Grant {
    name: String,
    namespace: String,
    fencing_token: u64,
    attempt_id: String,
}

#[derive(Deserialize)]
struct Closed {
    closed: bool,
}

/// A session that was opened for a caller. If the caller is not there any more, nobody has it.
pub(crate) struct Unclaimed(Option<Session>, Arc<Core>);

impl Unclaimed {
    pub(crate) fn claim(mut self) -> Option<Session> {
        self.0.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            drop(self.1.settle(Loose::Session(session.id)));
        }
    }
}

impl Core {
    /// Opens a session. A try whose answer is lost may leave one that nobody knows: it holds
    /// nothing and ends with its lease.
    pub(crate) async fn open(&self, owner: &OwnerId, ttl: Ttl) -> Result<Session> {
        let body = Open { owner: owner.as_str(), ttl_ms: ttl.as_millis() };
        let call = Call::post("/v1/sessions", &body, Effect::Write)?;
        let session = self.call(&call, read_opened).await?.value;
        self.known.learned(session.id, &session.owner, session.ttl);
        Ok(session)
    }

    /// Opens a session for a caller, who may leave meanwhile.
    pub(crate) async fn open_unclaimed(
        self: Arc<Self>,
        owner: OwnerId,
        ttl: Ttl,
    ) -> Result<Unclaimed> {
        let session = self.open(&owner, ttl).await?;
        Ok(Unclaimed(Some(session), self))
    }

    /// Opens the session of a private attempt.
    pub(crate) async fn open_private(&self, private: &Arc<Private>) -> Result<SessionId> {
        let session = self.open(&private.owner, private.ttl).await?;
        self.known.is_of(session.id, private);
        Ok(session.id)
    }

    pub(crate) async fn look(&self, id: SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        let body = Which { session_id: id.expose() };
        let call = Call::post("/v1/sessions/look", &body, Effect::Read)?.up_to(MAX_LOOK);
        let looked = self.call(&call, |reply| read_looked(reply, id)).await?.value;
        self.known.learned(id, &looked.0.owner, looked.0.ttl);
        Ok(looked)
    }

    /// Closes a session. `false`: it was gone, and not by an earlier try of this.
    pub(crate) async fn close(&self, id: SessionId) -> Result<bool> {
        let body = Which { session_id: id.expose() };
        let call = Call::post("/v1/sessions/close", &body, Effect::Write)?;
        let closed = self.call(&call, |reply| Ok(reply.read::<Closed>(200)?.closed)).await?;
        closed.certain(|closed| !closed)
    }
}

fn read_opened(reply: &Reply) -> core::result::Result<Session, Failure> {
    let opened: Opened = reply.read(201)?;
    let ttl = reply.part(Ttl::from_millis(opened.ttl_ms))?;
    Ok(Session {
        id: reply.part(SessionId::parse(&opened.session_id))?,
        owner: reply.part(OwnerId::new(&opened.owner))?,
        ttl,
        client_deadline: reply.deadline(opened.valid_ms, ttl),
    })
}

pub(crate) fn read_key(
    reply: &Reply,
    namespace: &str,
    name: &str,
) -> core::result::Result<LockKey, Failure> {
    Ok(LockKey::new(reply.part(Namespace::new(namespace))?, reply.part(LockName::new(name))?))
}

pub(crate) fn same_session(
    reply: &Reply,
    id: SessionId,
    told: &str,
) -> core::result::Result<(), Failure> {
    reply.expect(SessionId::parse(told).is_ok_and(|told| told == id), "it is another session's")
}

fn read_looked(
    reply: &Reply,
    id: SessionId,
) -> core::result::Result<(Session, Vec<HeldGrant>), Failure> {
    let looked: Looked = reply.read(200)?;
    same_session(reply, id, &looked.session_id)?;
    let ttl = reply.part(Ttl::from_millis(looked.ttl_ms))?;
    let owner = reply.part(OwnerId::new(&looked.owner))?;
    let mut grants = Vec::with_capacity(looked.grants.len());
    for grant in looked.grants {
        grants.push(HeldGrant {
            key: read_key(reply, &grant.namespace, &grant.name)?,
            token: reply.part(FencingToken::from_user(grant.fencing_token))?,
            attempt: reply.part(AttemptId::parse(&grant.attempt_id))?,
        });
    }
    let client_deadline = reply.deadline(looked.valid_ms, ttl);
    Ok((Session { id, owner, ttl, client_deadline }, grants))
}
