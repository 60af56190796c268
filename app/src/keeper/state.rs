//! What watchers of a keeper see.

use std::{collections::BTreeMap, fmt};

use dlock_domain::{FencingToken, LockKey, Moment};

/// Why a grant, or a whole session, is no longer to be believed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The store says that the grant is not there: revoked, say.
    Gone,
    /// The store says that the session is not there, nor anything that it held.
    SessionGone,
    /// No keep-alive was confirmed in time: the local deadline has passed (C12, C19).
    DeadlinePassed,
}

/// One grant, as its keeper sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptGrant {
    /// Its token.
    pub token: FencingToken,
    /// The last moment at which it may be believed in (INV-03).
    pub deadline: Moment,
    /// Set once it is lost; it then stays so.
    pub lost: Option<LossReason>,
}

/// A session and its grants, as their keeper sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperState {
    /// What is kept, and what was lost and not removed since.
    pub grants: BTreeMap<LockKey, KeptGrant>,
    /// Set once the whole session is lost; nothing renews it afterwards.
    pub lost: Option<LossReason>,
    /// How often the task was restarted after a panic (C17).
    pub restarts: u64,
}

impl KeeperState {
    /// The deadline of a grant that is not lost.
    #[must_use]
    pub fn deadline(&self, key: &LockKey) -> Option<Moment> {
        self.grants.get(key).filter(|grant| grant.lost.is_none()).map(|grant| grant.deadline)
    }

    /// Why the grant of this key is lost, if it is.
    #[must_use]
    pub fn loss(&self, key: &LockKey) -> Option<LossReason> {
        self.grants.get(key).and_then(|grant| grant.lost).or(self.lost)
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the store no longer has the grant",
            Self::SessionGone => "the store no longer has the session",
            Self::DeadlinePassed => "no keep-alive was confirmed before the deadline",
        })
    }
}
