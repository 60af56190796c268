//! What fields hold on the wire, and what becomes of them.
//!
//! Every field is optional to the JSON reader, so that a missing one and a `null` are the same and
//! both are named here.

use core::time::Duration;

use dlock_domain::{
    AttemptId, FencingToken, LockError, LockKey, LockName, Namespace, OwnerId, Reason, Result,
    SessionId, TokenFloor, Ttl,
};
use dlock_ports::AcquireRequest;
use serde::{Deserialize, Deserializer, de::Error};

use crate::HttpConfig;

/// A JSON string. It may be a secret, so errors don't repeat what came, and there is no `Debug`.
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> core::result::Result<Self, D::Error> {
        String::deserialize(from).map(Self).map_err(|_| D::Error::custom("must be a string"))
    }
}

/// A JSON integer from 0 to 2^64−1: not a string, not `1.0`, not `1e3` (C32, C36).
pub(crate) struct Whole(pub(crate) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> core::result::Result<Self, D::Error> {
        u64::deserialize(from).map(Self).map_err(|_| {
            D::Error::custom("must be a whole number, not negative, in digits, of at most 64 bits")
        })
    }
}

/// A value that must be there.
pub(crate) fn required<T>(value: Option<T>, field: &'static str) -> Result<T> {
    value.ok_or_else(|| LockError::invalid(field, "is missing"))
}

/// The key that name and namespace give; without a namespace it is the configured one.
pub(crate) fn key(
    config: &HttpConfig,
    name: Option<Text>,
    namespace: Option<Text>,
) -> Result<LockKey> {
    let name = LockName::new(&required(name, "name")?.0)?;
    Ok(LockKey::new(self::namespace(config, namespace)?, name))
}

/// A namespace; without one it is the configured one.
pub(crate) fn namespace(config: &HttpConfig, value: Option<Text>) -> Result<Namespace> {
    value.map_or_else(|| Ok(config.namespace.clone()), |text| Namespace::new(&text.0))
}

/// An owner that must be there.
pub(crate) fn owner(value: Option<Text>) -> Result<OwnerId> {
    OwnerId::new(&required(value, "owner")?.0)
}

/// A session's id that must be there.
pub(crate) fn session(value: Option<Text>) -> Result<SessionId> {
    SessionId::parse(&required(value, "session_id")?.0)
}

/// A token that must be there.
pub(crate) fn token(value: Option<Whole>) -> Result<FencingToken> {
    FencingToken::from_user(required(value, "fencing_token")?.0)
}

/// A lifetime that must be there: over HTTP there is no default that a client could overlook.
pub(crate) fn ttl(value: Option<Whole>) -> Result<Ttl> {
    Ttl::from_millis(required(value, "ttl_ms")?.0)
}

/// An attempt's id, if there is one.
pub(crate) fn attempt(value: Option<Text>) -> Result<Option<AttemptId>> {
    value.map(|text| AttemptId::parse(&text.0)).transpose()
}

/// How long to wait: 0, the default, to an hour.
pub(crate) fn max_wait(value: Option<Whole>) -> Result<Duration> {
    let wait = Duration::from_millis(value.map_or(0, |whole| whole.0));
    if wait > AcquireRequest::MAX_WAIT {
        return Err(LockError::invalid("max_wait_ms", "must be from 0 to 3600000 (1 h)"));
    }
    Ok(wait)
}

/// Who revokes; must be there.
pub(crate) fn actor(value: Option<Text>) -> Result<OwnerId> {
    OwnerId::for_field(&required(value, "actor")?.0, "actor")
}

/// Why somebody revokes; must be there.
pub(crate) fn reason(value: Option<Text>) -> Result<Reason> {
    Reason::new(&required(value, "reason")?.0)
}

/// The token that a revoke expects, if it expects one.
pub(crate) fn expected(value: Option<Whole>) -> Result<Option<FencingToken>> {
    value.map(|whole| FencingToken::for_field(whole.0, "expected_token")).transpose()
}

/// A floor that must be there.
pub(crate) fn floor(value: Option<Whole>) -> Result<TokenFloor> {
    TokenFloor::new(required(value, "at_least")?.0)
}
