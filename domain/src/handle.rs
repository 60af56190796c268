//! A grant, in its holder's hand.

use crate::{FencingToken, LockKey, Moment, OwnerId, SessionId, Ttl, WallTime};

/// What an acquire or a renew answers: a grant, and how long it may be believed in (C2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHandle {
    /// What is held.
    pub key: LockKey,
    /// The holder's label.
    pub owner: OwnerId,
    /// The session whose lease keeps it; a secret.
    pub session: SessionId,
    /// The token, the same for the life of the grant.
    pub token: FencingToken,
    /// The effective lifetime of the lease.
    pub ttl: Ttl,
    /// The last moment at which the holder may believe in the grant (INV-03).
    pub client_deadline: Moment,
    /// When the store will end the lease, for display only.
    pub server_expiry: WallTime,
}
