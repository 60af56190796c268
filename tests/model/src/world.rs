//! The few things that sequences are about. Few, so that they meet.

use dlock_domain::{
    AttemptId, LockError, LockKey, LockName, Namespace, OwnerId, Reason, Result, SessionId, Ttl,
};

/// Session slots: each holds the session that was last opened in it.
pub(crate) const SLOTS: u8 = 3;
/// Keys: two whose names share a prefix, and one of the same name in another namespace.
pub(crate) const KEYS: u8 = 3;
/// Attempt ids per key.
pub(crate) const ATTEMPTS: u8 = 5;
/// Owners, lifetimes, namespaces.
pub(crate) const OWNERS: u8 = 2;
pub(crate) const TTLS: u8 = 2;
pub(crate) const NAMESPACES: u8 = 2;

const KEY_NAMES: [(&str, &str); KEYS as usize] =
    [("default", "a"), ("default", "ab"), ("other", "a")];
const OWNER_NAMES: [&str; OWNERS as usize] = ["ann", "bob"];
/// The shorter is the shortest that every store grants as it was asked for.
const TTL_MILLIS: [u64; TTLS as usize] = [2_000, 3_000];

/// How far time is moved at once: around the ends of the two lifetimes, and a little.
pub(crate) const ADVANCES_MILLIS: [u64; 10] =
    [1, 1, 100, 100, 400, 1_999, 2_000, 2_001, 2_999, 3_000];
/// Prefixes to list by; the last begins no key.
pub(crate) const PREFIXES: [&str; 4] = ["", "a", "ab", "z"];
/// Names to list after.
pub(crate) const AFTERS: [&str; 3] = ["A", "a", "ab"];
/// Page sizes.
pub(crate) const PAGES: [u16; 4] = [0, 1, 2, 100];

fn pick<T: Copy>(from: &[T], index: u8) -> Result<T> {
    from.get(usize::from(index))
        .copied()
        .ok_or_else(|| LockError::invalid("index", "names nothing in this small world"))
}

pub(crate) fn key(index: u8) -> Result<LockKey> {
    let (namespace, name) = pick(&KEY_NAMES, index)?;
    Ok(LockKey::new(Namespace::new(namespace)?, LockName::new(name)?))
}

pub(crate) fn namespace(index: u8) -> Result<Namespace> {
    Namespace::new(pick(&["default", "other"], index)?)
}

pub(crate) fn owner(index: u8) -> Result<OwnerId> {
    OwnerId::new(pick(&OWNER_NAMES, index)?)
}

pub(crate) fn ttl(index: u8) -> Result<Ttl> {
    Ttl::from_millis(pick(&TTL_MILLIS, index)?)
}

/// An attempt belongs to one key: to use it for another is a misuse that the service, not the
/// store, refuses.
pub(crate) fn attempt(key: u8, index: u8) -> AttemptId {
    AttemptId::from_bits((u128::from(key) + 1) << 64 | (u128::from(index) + 1))
}

/// A session id of the caller's choice, a new one for each generation of a slot. Generation 0 is
/// never opened.
pub(crate) fn session_id(slot: u8, generation: u64) -> SessionId {
    SessionId::from_bits((u128::from(slot) + 1) << 96 | u128::from(generation))
}

pub(crate) fn reason() -> Result<Reason> {
    Reason::new("to see what happens")
}
