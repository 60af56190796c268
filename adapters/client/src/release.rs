//! Renewing, releasing, forgetting.

use std::sync::Arc;

use dlock_domain::{AttemptId, FencingToken, LockHandle, LockKey, Result, SessionId};
use dlock_ports::{Current, Released, SessionRef};
use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Effect},
    core::Core,
    failure::Failure,
    grant::GrantBody,
    reply::Reply,
    settle::Loose,
    tries::Answered,
};

#[derive(Serialize)]
struct Of<'a> {
    name: &'a str,
    namespace: &'a str,
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt_id: Option<String>,
}

impl<'a> Of<'a> {
    fn token(key: &'a LockKey, session: SessionId, token: FencingToken) -> Self {
        Self { fencing_token: Some(token.get()), ..Self::key(key, session) }
    }

    fn attempt(key: &'a LockKey, session: SessionId, attempt: AttemptId) -> Self {
        Self { attempt_id: Some(attempt.to_string()), ..Self::key(key, session) }
    }

    fn key(key: &'a LockKey, session: SessionId) -> Self {
        Self {
            name: key.name().as_str(),
            namespace: key.namespace().as_str(),
            session_id: session.expose(),
            fencing_token: None,
            attempt_id: None,
        }
    }
}

#[derive(Deserialize)]
struct ReleasedBody {
    released: bool,
    current: String,
}

fn read_released(reply: &Reply) -> core::result::Result<Released, Failure> {
    let body: ReleasedBody = reply.read(200)?;
    let current = match body.current.as_str() {
        "none" => Current::None,
        "same" => Current::Same,
        "other" => Current::Other,
        // A later server may find something that has no name here.
        _ => Current::Unknown,
    };
    Ok(Released { released: body.released, current })
}

impl Core {
    pub(crate) async fn renew(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: SessionId,
    ) -> Result<LockHandle> {
        let call = Call::post("/v1/locks/renew", &Of::token(key, session, token), Effect::Write)?;
        let call = call.within(self.brisk(self.known.session(session).map(|(_, ttl)| ttl)));
        let renewed = self.call(&call, |reply| {
            let handle = reply.read::<GrantBody>(200)?.check(reply, key, session)?;
            reply.expect(handle.token == token, "it is about another token")?;
            Ok(handle)
        });
        let handle = renewed.await?.value;
        self.known.learned(session, &handle.owner, handle.ttl);
        Ok(handle)
    }

    /// Releases a grant, and closes the session if the client made it for this lock.
    pub(crate) async fn release(
        self: Arc<Self>,
        key: LockKey,
        token: FencingToken,
        session: SessionId,
    ) -> Result<Released> {
        let call =
            Call::post("/v1/locks/release", &Of::token(&key, session, token), Effect::Write)?;
        // "Not released" would count as a loss, and an earlier try may have released it.
        let answer: Answered<Released> = self.call(&call, read_released).await?;
        let answer = answer.certain(|answer| !answer.released)?;
        // Where the session holds the lock under a newer token, the session is still in use.
        let done = answer.released || matches!(answer.current, Current::None | Current::Other);
        if done
            && let Some(private) = self.known.made(session)
            && private.key == key
            && let Some(session) = private.end()
        {
            self.settle_briefly(Loose::Session(session)).await;
        }
        Ok(answer)
    }

    /// Settles an attempt in a session.
    pub(crate) async fn forget_attempt(
        &self,
        key: &LockKey,
        session: SessionId,
        attempt: AttemptId,
    ) -> Result<Released> {
        let call =
            Call::post("/v1/locks/release", &Of::attempt(key, session, attempt), Effect::Write)?;
        // `released: false` is no loss here: what counts is that the attempt is settled.
        Ok(self.call(&call, read_released).await?.value)
    }

    /// Settles an attempt for good.
    ///
    /// A private attempt that this client does not know was never sent by it: it only sees to it
    /// that it never will be.
    pub(crate) async fn forget(
        self: Arc<Self>,
        key: LockKey,
        session: SessionRef,
        attempt: AttemptId,
    ) -> Result<Released> {
        let (owner, ttl) = match session {
            SessionRef::Id(session) => return self.forget_attempt(&key, session, attempt).await,
            SessionRef::Private { owner, ttl } => (owner, ttl),
        };
        let private = self.known.private(attempt, &key, &owner, ttl)?;
        let session = private.session.get().copied().filter(|_| !private.is_closed());
        let answer = match session {
            Some(session) => self.forget_attempt(&key, session, attempt).await?,
            None => Released { released: false, current: self.current(&key).await },
        };
        if let Some(session) = private.end() {
            self.settle_briefly(Loose::Session(session)).await;
        }
        Ok(answer)
    }

    async fn current(&self, key: &LockKey) -> Current {
        match self.inspect(key).await {
            Ok(None) => Current::None,
            Ok(Some(_)) => Current::Other,
            Err(error) => {
                tracing::debug!(%error, "the look after a release failed");
                Current::Unknown
            }
        }
    }
}
