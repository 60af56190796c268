//! Between records and columns. Total: a column that cannot be read is an incident that names its
//! key, never a panic.

use dlock_domain::{
    AttemptId, FencingToken, Invariant, LockError, LockKey, LockName, Moment, Namespace, OwnerId,
    Result, SessionId, Ttl, WallTime,
};

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

/// Large moments are far beyond any clock of ours; they stop at the column's end.
pub(crate) fn moment_column(moment: Moment) -> i64 {
    i64::try_from(moment.as_nanos()).unwrap_or(i64::MAX)
}

pub(crate) fn moment(column: i64) -> Moment {
    Moment::from_nanos(u64::try_from(column).unwrap_or(0))
}

pub(crate) fn wall_column(wall: WallTime) -> i64 {
    i64::try_from(wall.as_unix_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn wall(column: i64) -> WallTime {
    WallTime::from_unix_millis(u64::try_from(column).unwrap_or(0))
}

pub(crate) fn number_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn number(column: i64) -> u64 {
    u64::try_from(column).unwrap_or(0)
}

pub(crate) fn token(column: i64) -> Result<FencingToken> {
    FencingToken::from_store(number(column))
}

pub(crate) fn ttl(column: i64, of: &str) -> Result<Ttl> {
    Ttl::from_millis(number(column)).map_err(|_| unreadable(of, "a lifetime"))
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

fn unreadable(of: &str, what: &str) -> LockError {
    LockError::incident(
        Invariant::RecordsReadable,
        format!("the record of {of:?} holds {what} that cannot be read"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use dlock_domain::ErrorKind;

    #[test]
    fn a_corrupt_column_is_an_incident_that_names_its_key() {
        let corrupt = ErrorKind::InvariantViolated(Invariant::RecordsReadable);
        for error in [
            session_id(&[1, 2, 3], "default/a").unwrap_err(),
            ttl(-1, "default/a").unwrap_err(),
            owner("a\nb", "default/a").unwrap_err(),
            key("default/a", "x").unwrap_err(),
        ] {
            assert_eq!(error.kind(), corrupt);
        }
        assert!(ttl(-1, "default/a").unwrap_err().detail().contains("default/a"));
        assert!(token(0).is_err() && token(-5).is_err());
    }
}
