//! What can happen to a lock, and what comes of it.

use crate::{AttemptId, FencingToken, LockOutcome, SessionId, TokenFloor, WallTime};

/// A wish to hold the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The session that would hold it.
    pub session: SessionId,
    /// The acquire call.
    pub attempt: AttemptId,
    /// The token drawn for it.
    pub token: FencingToken,
    /// When, for display.
    pub at: WallTime,
}

/// What can happen to a lock.
///
/// Whether a session lives is not the lock's to know: a store that finds a session's lease ended
/// applies [`Expire`](Self::Expire) first, and only then what it was about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockEvent {
    /// A live session asks for the lock.
    Insert(Proposal),
    /// The holder of this token extends its lease.
    Extend(FencingToken),
    /// The holder of this token releases it: compared on the token and nothing else (INV-06).
    Delete(FencingToken),
    /// An attempt is settled for good; whatever it was granted ends.
    Forget(AttemptId),
    /// An operator breaks the lock.
    Revoke {
        /// Only if this is the live grant's token.
        expected: Option<FencingToken>,
        /// The floor drawn for it, above every token before.
        floor: TokenFloor,
    },
    /// A session's lease ended by itself.
    Expire(SessionId),
    /// A session was closed.
    SessionClosed(SessionId),
    /// The namespace's floor was raised.
    FloorRaised(TokenFloor),
}

/// What came of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The proposal became the grant.
    Granted,
    /// The proposal's attempt holds the lock already, under the token that it was given then.
    Recognised(FencingToken),
    /// Somebody else holds it.
    Held,
    /// The attempt holds the lock for another session: a misuse of its id.
    AttemptMisused,
    /// The drawn token does not exceed the fence: an incident (INV-04).
    TokenTooLow,
    /// The lease is the holder's still.
    Extended,
    /// The grant is not there: lost.
    Lost,
    /// The grant has ended with this event.
    Ended(FencingToken),
    /// There was nothing to end.
    Nothing,
    /// What the revoke came to.
    Revoke(LockOutcome),
}
