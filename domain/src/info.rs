//! What can be seen of a lock from outside.

use crate::{FencingToken, LockKey, OwnerId, SessionId, WallTime};

/// A live grant as others see it; never the basis of a decision about ownership (C2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// What is held.
    pub key: LockKey,
    /// The holder's label.
    pub owner: OwnerId,
    /// The holder's session, inside one server only: over a wire it is absent.
    pub session: Option<SessionId>,
    /// The grant's token.
    pub token: FencingToken,
    /// When it was granted, for display.
    pub acquired_at: WallTime,
    /// When the lease ends unless it is kept alive, for display.
    pub server_expiry: WallTime,
    /// How many wait: this server's queue and what the adapter knows of; advisory.
    pub waiter_count: u32,
}
