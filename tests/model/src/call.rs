//! An operation in one store's terms, and its answer.

use std::sync::Arc;

use dlock_domain::{
    Applied, AttemptId, Deadline, ErrorKind, FencingToken, LockError, LockHandle, LockInfo,
    LockKey, LockName, LockOutcome, Namespace, OwnerId, Result, Session, SessionId, TokenFloor,
    Ttl,
};
use dlock_ports::{
    Attempt, Backend, Consistency, HeldGrant, Holder, InsertRequest, Kept, ListRequest, Page,
    Raised, RevokeRequest,
};

use crate::world;

/// One call of a port's method, with this store's own tokens and ids.
#[derive(Clone, Debug)]
pub enum Call {
    /// `SessionStore::open`.
    Open {
        /// The caller's place for it.
        slot: u8,
        /// Its owner.
        owner: OwnerId,
        /// Its lifetime.
        ttl: Ttl,
        /// Its id, if the caller chose one.
        id: Option<SessionId>,
    },
    /// `SessionStore::keep_alive`.
    KeepAlive(SessionId, Vec<(LockKey, FencingToken)>),
    /// `SessionStore::look`.
    Look(SessionId),
    /// `SessionStore::close`.
    Close(SessionId),
    /// `SessionStore::forget`.
    Forget(LockKey, Holder, AttemptId),
    /// `LockStore::try_insert`.
    Insert(InsertRequest),
    /// `LockStore::extend`.
    Extend(LockKey, FencingToken),
    /// `LockStore::delete_if_owner`.
    Delete(LockKey, FencingToken),
    /// `LockStore::read`.
    Read(LockKey),
    /// `LockStore::revoke`, with what is expected.
    Revoke(LockKey, Option<FencingToken>),
    /// `LockStore::reap_expired`.
    Reap(u32),
    /// `FloorControl::raise`.
    Raise(Namespace, TokenFloor),
    /// `Directory::list`.
    List {
        /// The namespace.
        namespace: Namespace,
        /// The prefix.
        prefix: Arc<str>,
        /// The name before.
        after: Option<LockName>,
        /// The page's size.
        limit: u16,
    },
}

/// What a call answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// An error.
    Failed(ErrorKind, Applied),
    /// Of `open`.
    Opened(Session),
    /// Of `keep_alive`.
    Kept(Option<Kept>),
    /// Of `look`.
    Looked(Option<(Session, Vec<HeldGrant>)>),
    /// Of `close`, `forget` and `delete_if_owner`.
    Did(bool),
    /// Of `try_insert`: the lock is the caller's.
    Granted(LockHandle),
    /// Of `try_insert`: it is not.
    Held,
    /// Of `extend`.
    Extended(Option<LockHandle>),
    /// Of `read`.
    Info(Option<LockInfo>),
    /// Of `revoke`.
    Revoked(LockOutcome),
    /// Of `reap_expired`.
    Reaped(u32),
    /// Of `raise`.
    Raised(Raised),
    /// Of `list`.
    Listed(Page),
}

impl Call {
    /// Makes the call.
    ///
    /// # Cancellation
    /// As the method that is called.
    pub async fn perform(&self, backend: &Backend, by: Deadline) -> Answer {
        self.ask(backend, by)
            .await
            .unwrap_or_else(|error| Answer::Failed(error.kind(), error.applied()))
    }

    async fn ask(&self, backend: &Backend, by: Deadline) -> Result<Answer> {
        let Backend { locks, sessions, directory, floors, .. } = backend;
        Ok(match self {
            Self::Open { owner, ttl, id, .. } => {
                Answer::Opened(sessions.open(owner.clone(), *ttl, *id, by).await?)
            }
            Self::KeepAlive(id, held) => Answer::Kept(sessions.keep_alive(id, held, by).await?),
            Self::Look(id) => Answer::Looked(sessions.look(id, by).await?),
            Self::Close(id) => Answer::Did(sessions.close(id, by).await?),
            Self::Forget(key, holder, attempt) => {
                Answer::Did(sessions.forget(key, holder, *attempt, by).await?)
            }
            Self::Insert(request) => match locks.try_insert(request.clone(), by).await? {
                Attempt::Granted(handle) => Answer::Granted(handle),
                Attempt::Held(_) => Answer::Held,
            },
            Self::Extend(key, token) => Answer::Extended(locks.extend(key, *token, by).await?),
            Self::Delete(key, token) => Answer::Did(locks.delete_if_owner(key, *token, by).await?),
            Self::Read(key) => Answer::Info(locks.read(key, Consistency::Linearizable, by).await?),
            Self::Revoke(key, expected) => {
                let (actor, reason) = (world::owner(0)?, world::reason()?);
                let request = RevokeRequest { actor, reason, expected: *expected };
                Answer::Revoked(locks.revoke(key, request, by).await?)
            }
            Self::Reap(limit) => Answer::Reaped(locks.reap_expired(*limit, by).await?),
            Self::Raise(namespace, at_least) => match floors {
                Some(floors) => Answer::Raised(floors.raise(namespace, *at_least, by).await?),
                None => return Err(unsupported()),
            },
            Self::List { namespace, prefix, after, limit } => match directory {
                Some(directory) => {
                    let (namespace, prefix) = (namespace.clone(), prefix.clone());
                    let (after, limit) = (after.clone(), *limit);
                    let request = ListRequest { namespace, prefix, after, limit };
                    Answer::Listed(directory.list(request, by).await?)
                }
                None => return Err(unsupported()),
            },
        })
    }
}

/// Never seen: a capability that a store lacks is not called.
fn unsupported() -> LockError {
    LockError::new(ErrorKind::Unsupported, "the store lacks this")
}
