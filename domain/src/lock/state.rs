//! What a lock can be.

use crate::{AttemptId, FencingToken, SessionId, TokenFloor, WallTime};

/// A live grant, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its token.
    pub token: FencingToken,
    /// The session whose life it shares.
    pub session: SessionId,
    /// The acquire call that was given it.
    pub attempt: AttemptId,
    /// When, for display.
    pub acquired_at: WallTime,
}

/// One lock: free or held, with the floor that outlives every grant (INV-04).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Nobody holds it.
    Free {
        /// The highest token granted or floor set.
        fence: TokenFloor,
    },
    /// One grant is live (INV-01).
    Held {
        /// The highest token granted or floor set: at least the grant's own token.
        fence: TokenFloor,
        /// The grant.
        grant: Grant,
    },
}

impl LockState {
    /// A lock that was never touched.
    pub const UNTOUCHED: Self = Self::Free { fence: TokenFloor::NONE };

    /// The highest token granted or floor set.
    #[must_use]
    pub const fn fence(&self) -> TokenFloor {
        match self {
            Self::Free { fence } | Self::Held { fence, .. } => *fence,
        }
    }

    /// The live grant.
    #[must_use]
    pub const fn grant(&self) -> Option<&Grant> {
        match self {
            Self::Free { .. } => None,
            Self::Held { grant, .. } => Some(grant),
        }
    }
}
