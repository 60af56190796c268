//! A session, as its store reports it.

use crate::{Moment, OwnerId, SessionId, Ttl};

/// A lease with an owner: what it holds lives as long as it does (C2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The id, a secret.
    pub id: SessionId,
    /// The label for people.
    pub owner: OwnerId,
    /// The effective lifetime.
    pub ttl: Ttl,
    /// The last moment at which its holder may believe in it (INV-03).
    pub client_deadline: Moment,
}
