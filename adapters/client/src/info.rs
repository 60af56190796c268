//! A lock as others see it, from the wire.

use dlock_domain::{FencingToken, LockInfo, LockKey, LockName, Namespace, OwnerId, WallTime};
use serde::Deserialize;

use crate::{failure::Failure, reply::Reply};

/// `LockInfo` of C3.
#[derive(Debug, Deserialize)]
pub(crate) struct InfoBody {
    name: String,
    namespace: String,
    owner: String,
    fencing_token: u64,
    held_for_ms: u64,
    expires_in_ms: u64,
    waiter_count: u32,
}

impl InfoBody {
    /// What it says, on this machine's clock. The session stays on the server.
    pub(crate) fn check(&self, reply: &Reply) -> Result<LockInfo, Failure> {
        let now = reply.wall.as_unix_millis();
        let namespace = reply.part(Namespace::new(&self.namespace))?;
        let name = reply.part(LockName::new(&self.name))?;
        Ok(LockInfo {
            key: LockKey::new(namespace, name),
            owner: reply.part(OwnerId::new(&self.owner))?,
            session: None,
            token: reply.part(FencingToken::from_user(self.fencing_token))?,
            acquired_at: WallTime::from_unix_millis(now.saturating_sub(self.held_for_ms)),
            server_expiry: WallTime::from_unix_millis(now.saturating_add(self.expires_in_ms)),
            waiter_count: self.waiter_count,
        })
    }

    /// The same, which must be about this lock.
    pub(crate) fn check_of(&self, key: &LockKey, reply: &Reply) -> Result<LockInfo, Failure> {
        let info = self.check(reply)?;
        reply.expect(info.key == *key, "it is about another lock")?;
        Ok(info)
    }
}
