//! What can be done, in terms that mean something to every store.
//!
//! Stores give different tokens and ids, so a step names them by how the caller came to know
//! them: "the newest token of this key", "the session in this slot". Every step means something
//! whatever came before it, so a failing sequence can be shortened freely.

use dlock_ports::Intent;

/// One operation, and what becomes of its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub op: Op,
    /// What becomes of the reply.
    pub reply: Reply,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It arrives.
    Arrives,
    /// It is lost after the operation was done, and the caller repeats the same call.
    Lost,
    /// The caller drops the call after it was sent, and repeats it: it may have been done or not.
    Dropped,
    /// The call's deadline was past when it was made: it must be refused, with no effect.
    TooLate,
}

/// An operation; indices name things of the small world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `SessionStore::open`, into a slot.
    Open {
        /// Where the caller keeps it.
        slot: u8,
        /// For this owner.
        owner: u8,
        /// With this lifetime.
        ttl: u8,
        /// Under which id.
        id: Id,
    },
    /// `SessionStore::keep_alive`.
    KeepAlive {
        /// Which session.
        session: Sess,
        /// What its holder believes it holds.
        held: Vec<(u8, Tok)>,
    },
    /// `SessionStore::look`.
    Look(Sess),
    /// `SessionStore::close`.
    Close(Sess),
    /// `SessionStore::forget`.
    Forget {
        /// Which lock.
        key: u8,
        /// Whose attempt.
        who: Who,
        /// Which attempt.
        attempt: u8,
    },
    /// `LockStore::try_insert`.
    Insert {
        /// Which lock.
        key: u8,
        /// For whom.
        who: Who,
        /// Which attempt.
        attempt: u8,
        /// To take it, or only to find it.
        intent: Intent,
    },
    /// `LockStore::extend`.
    Extend {
        /// Which lock.
        key: u8,
        /// By which token.
        token: Tok,
    },
    /// `LockStore::delete_if_owner`.
    Delete {
        /// Which lock.
        key: u8,
        /// By which token.
        token: Tok,
    },
    /// `LockStore::read`, linearizable.
    Read {
        /// Which lock.
        key: u8,
    },
    /// `LockStore::revoke`.
    Revoke {
        /// Which lock.
        key: u8,
        /// Only if this is the live token.
        expected: Option<Tok>,
    },
    /// `LockStore::reap_expired`.
    Reap {
        /// At most so many.
        limit: u8,
    },
    /// `FloorControl::raise`.
    Raise {
        /// Of which namespace.
        namespace: u8,
        /// How far.
        at_least: AtLeast,
    },
    /// `Directory::list`; indices into the world's prefixes, names and page sizes.
    List {
        /// In which namespace.
        namespace: u8,
        /// By which prefix.
        prefix: u8,
        /// After which name.
        after: Option<u8>,
        /// How many.
        page: u8,
    },
    /// Reads every lock, looks at every session and lists every namespace.
    Audit,
    /// Time passes.
    Advance {
        /// So much of it.
        millis: u64,
    },
}

/// Under which id a session is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    /// One that the caller never used.
    Fresh,
    /// The one that the slot's session has.
    Same,
    /// One that the store draws.
    Drawn,
}

/// A session, as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sess {
    /// The one last opened in this slot, or one that never was.
    Slot(u8),
    /// The private one last made for this key, or one that never was.
    OfLock(u8),
}

/// For whom a lock is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The session in this slot.
    Slot(u8),
    /// A private session.
    Private {
        /// Of this owner.
        owner: u8,
        /// With this lifetime.
        ttl: u8,
    },
}

/// A token, as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tok {
    /// The newest that was granted for the key, or the one so many before it.
    Known(u8),
    /// The newest that was granted for this other key.
    OfKey(u8),
    /// One that was never granted.
    NeverGranted,
}

/// How far a floor is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtLeast {
    /// Not at all.
    Nothing,
    /// A little above what the caller knows of.
    Above,
    /// Farther than a store may allow.
    TooFar,
}
