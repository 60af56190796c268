//! A grant, from the wire.

use dlock_domain::{
    FencingToken, LockHandle, LockKey, LockName, Namespace, OwnerId, SessionId, Ttl,
};
use serde::Deserialize;

use crate::{failure::Failure, reply::Reply};

/// The answer of acquire and renew.
#[derive(Deserialize)]
pub(crate) struct GrantBody {
    name: String,
    namespace: String,
    owner: String,
    session_id: String,
    fencing_token: u64,
    ttl_ms: u64,
    valid_ms: u64,
}

impl GrantBody {
    /// The handle, if the grant is the one that was asked for.
    pub(crate) fn check(
        self,
        reply: &Reply,
        key: &LockKey,
        session: SessionId,
    ) -> Result<LockHandle, Failure> {
        let namespace = reply.part(Namespace::new(&self.namespace))?;
        let name = reply.part(LockName::new(&self.name))?;
        reply.expect(LockKey::new(namespace, name) == *key, "it is about another lock")?;
        let granted_to = reply.part(SessionId::parse(&self.session_id))?;
        reply.expect(granted_to == session, "it is about another session")?;
        let ttl = reply.part(Ttl::from_millis(self.ttl_ms))?;
        let client_deadline = reply.deadline(self.valid_ms, ttl);
        Ok(LockHandle {
            key: key.clone(),
            owner: reply.part(OwnerId::new(&self.owner))?,
            session,
            token: reply.part(FencingToken::from_user(self.fencing_token))?,
            ttl,
            client_deadline,
            server_expiry: reply.expiry(client_deadline, ttl),
        })
    }
}
