//! Between records and columns. Total: a column that cannot be read is an incident that names its
//! key, never a panic.

use std::time::Duration;

use dlock_domain::{
    AttemptId, FencingToken, Invariant, LockError, LockKey, LockName, Namespace, OwnerId, Result,
    SessionId, Ttl, WallTime,
};

/// The mark of a private holder's attempt stands under no session.
pub(crate) const NO_SESSION: &[u8] = &[];

pub(crate) fn id_bytes(bits: u128) -> [u8; 16] {
    bits.to_be_bytes()
}

pub(crate) fn session_id(bytes: &[u8], of: &str) -> Result<SessionId> {
    bits(bytes, of).map(SessionId::from_bits)
}

pub(crate) fn attempt_id(bytes: &[u8], of: &str) -> Result<AttemptId> {
    bits(bytes, of).map(AttemptId::from_bits)
}

fn bits(bytes: &[u8], of: &str) -> Result<u128> {
    let array = <[u8; 16]>::try_from(bytes).map_err(|_| unreadable(of, "an id"))?;
    Ok(u128::from_be_bytes(array))
}

pub(crate) fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

/// Numbers of ours end far below a column's end.
pub(crate) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn token(column: i64) -> Result<FencingToken> {
    FencingToken::from_store(number(column))
}

pub(crate) fn ttl(column: i64, of: &str) -> Result<Ttl> {
    Ttl::from_millis(number(column)).map_err(|_| unreadable(of, "a lifetime"))
}

/// What is left of a lease; nothing, where it has ended.
pub(crate) fn left(column: i64) -> Duration {
    Duration::from_millis(number(column))
}

pub(crate) fn wall(column: Option<i64>) -> WallTime {
    WallTime::from_unix_millis(column.map_or(0, number))
}

pub(crate) fn owner(text: &str, of: &str) -> Result<OwnerId> {
    OwnerId::new(text).map_err(|_| unreadable(of, "an owner"))
}

pub(crate) fn key(namespace: &str, name: &str) -> Result<LockKey> {
    let namespace = Namespace::new(namespace).map_err(|_| unreadable(name, "a namespace"))?;
    let name = LockName::new(name).map_err(|_| unreadable(name, "a name"))?;
    Ok(LockKey::new(namespace, name))
}

/// Names the key for the log and for the operator.
pub(crate) fn place(key: &LockKey) -> String {
    format!("{}/{}", key.namespace(), key.name())
}

pub(crate) fn unreadable(of: &str, what: &str) -> LockError {
    LockError::incident(
        Invariant::RecordsReadable,
        format!("the record of {of:?} holds {what} that cannot be read"),
    )
}

#[cfg(test)]
mod tests {
    use dlock_domain::ErrorKind;

    use super::*;

    #[test]
    fn a_corrupt_column_is_an_incident_that_names_its_key() {
        let corrupt = ErrorKind::InvariantViolated(Invariant::RecordsReadable);
        for error in [
            session_id(&[1, 2, 3], "default/a").unwrap_err(),
            attempt_id(&[], "default/a").unwrap_err(),
            ttl(-1, "default/a").unwrap_err(),
            owner("a\nb", "default/a").unwrap_err(),
            key("default/a", "default/a").unwrap_err(),
        ] {
            assert_eq!(error.kind(), corrupt);
            assert!(error.detail().contains("default/a"), "{error}");
        }
        assert!(token(0).is_err() && token(-5).is_err());
        assert_eq!(left(-3), Duration::ZERO);
    }
}
