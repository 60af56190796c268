//! Values, in few words.

use std::sync::atomic::{AtomicU64, Ordering};

use dlock_domain::{
    AttemptId, FencingToken, LockKey, LockName, Namespace, OwnerId, Reason, Session, SessionId, Ttl,
};
use dlock_ports::{Holder, RevokeRequest};

/// A key in the default namespace.
pub fn key(name: &str) -> LockKey {
    key_in(Namespace::DEFAULT, name)
}

/// A key.
pub fn key_in(namespace: &str, name: &str) -> LockKey {
    LockKey::new(ns(namespace), LockName::new(name).expect("a valid name"))
}

/// A namespace.
pub fn ns(name: &str) -> Namespace {
    Namespace::new(name).expect("a valid namespace")
}

/// An owner.
pub fn owner(name: &str) -> OwnerId {
    OwnerId::new(name).expect("a valid owner")
}

/// A lifetime that no case waits for.
pub fn long() -> Ttl {
    millis(60 * 60 * 1_000)
}

/// A lifetime in milliseconds.
pub fn millis(ms: u64) -> Ttl {
    Ttl::from_millis(ms).expect("a valid lifetime")
}

/// A token.
pub fn token(number: u64) -> FencingToken {
    FencingToken::from_user(number).expect("a valid token")
}

/// A session as a holder.
pub fn of(session: &Session) -> Holder {
    Holder::Session(session.clone())
}

/// A holder with a session of the lock's own that no case outlives.
pub fn private(name: &str) -> Holder {
    private_for(name, long())
}

/// A holder with a session of the lock's own.
pub fn private_for(name: &str, ttl: Ttl) -> Holder {
    Holder::Private { owner: owner(name), ttl }
}

/// An operator's wish.
pub fn revocation(expected: Option<FencingToken>) -> RevokeRequest {
    RevokeRequest {
        actor: owner("operator"),
        reason: Reason::new("the holder is stuck").expect("a valid reason"),
        expected,
    }
}

/// 128 bits that were not used before, in this process or another one beside it.
fn fresh_bits() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let low = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
    (u128::from(std::process::id()) << 64) | low
}

/// An attempt id that was not used before.
pub fn attempt() -> AttemptId {
    AttemptId::from_bits(fresh_bits())
}

/// A session id that was not used before.
pub fn session_id() -> SessionId {
    SessionId::from_bits(fresh_bits())
}
