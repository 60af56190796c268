//! Records as they lie in etcd.
//!
//! JSON, so that an operator can read them with etcd's own tools. Every record says which version
//! wrote it (`v`) and which is the least that can read it (`r`), so two versions of dlock may share
//! a cluster during an upgrade: unknown fields are passed over, an unreadable record is an incident
//! that names its key, and nothing panics. No record holds a token (it is the key's revision) or an
//! expiry (it is the lease's).

use dlock_domain::{AttemptId, Invariant, LockError, OwnerId, Result, SessionId, Ttl, WallTime};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// What this version writes, and reads.
const VERSION: u32 = 1;

/// A grant: written once, by the transaction that grants (trap 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantRecord {
    pub(crate) owner: OwnerId,
    pub(crate) session: SessionId,
    /// Whether the session lives and dies with the lock.
    pub(crate) private: bool,
    pub(crate) attempt: AttemptId,
    pub(crate) acquired_at: WallTime,
    /// What was asked.
    pub(crate) asked: Ttl,
    /// What the lease was granted.
    pub(crate) ttl: Ttl,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    pub(crate) owner: OwnerId,
    /// What was asked.
    pub(crate) asked: Ttl,
    /// What the lease was granted.
    pub(crate) ttl: Ttl,
    /// The key in etcd of the lock that a private session was made for.
    pub(crate) lock: Option<String>,
}

/// A namespace's numbering: a token is a revision plus this (trap 15).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetaRecord {
    pub(crate) offset: u64,
    /// The offset that it took the place of.
    pub(crate) before: u64,
}

/// The last revocation of a lock; its floor is the record's own revision (trap 16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FloorRecord {
    pub(crate) actor: String,
    pub(crate) reason: String,
    pub(crate) at: WallTime,
}

#[derive(Serialize, Deserialize)]
struct Versions {
    v: u32,
    r: u32,
}

const VERSIONS: Versions = Versions { v: VERSION, r: VERSION };

#[derive(Serialize, Deserialize)]
struct GrantFields {
    #[serde(flatten)]
    versions: Versions,
    owner: String,
    session: String,
    private: bool,
    attempt: String,
    /// Who was let in, once there are access rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    acquired_at_ms: u64,
    asked_ms: u64,
    ttl_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct SessionFields {
    #[serde(flatten)]
    versions: Versions,
    owner: String,
    asked_ms: u64,
    ttl_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct MetaFields {
    #[serde(flatten)]
    versions: Versions,
    offset: u64,
    before: u64,
}

#[derive(Serialize, Deserialize)]
struct FloorFields {
    #[serde(flatten)]
    versions: Versions,
    actor: String,
    reason: String,
    at_ms: u64,
}

impl GrantRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        write(&GrantFields {
            versions: VERSIONS,
            owner: self.owner.as_str().to_owned(),
            session: self.session.expose(),
            private: self.private,
            attempt: self.attempt.to_string(),
            principal: None,
            acquired_at_ms: self.acquired_at.as_unix_millis(),
            asked_ms: self.asked.as_millis(),
            ttl_ms: self.ttl.as_millis(),
        })
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        read(key, value, |fields: GrantFields| {
            Ok(Self {
                owner: OwnerId::new(&fields.owner)?,
                session: SessionId::parse(&fields.session)?,
                private: fields.private,
                attempt: AttemptId::parse(&fields.attempt)?,
                acquired_at: WallTime::from_unix_millis(fields.acquired_at_ms),
                asked: Ttl::from_millis(fields.asked_ms)?,
                ttl: Ttl::from_millis(fields.ttl_ms)?,
            })
        })
    }
}

impl SessionRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        write(&SessionFields {
            versions: VERSIONS,
            owner: self.owner.as_str().to_owned(),
            asked_ms: self.asked.as_millis(),
            ttl_ms: self.ttl.as_millis(),
            lock: self.lock.clone(),
        })
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        read(key, value, |fields: SessionFields| {
            Ok(Self {
                owner: OwnerId::new(&fields.owner)?,
                asked: Ttl::from_millis(fields.asked_ms)?,
                ttl: Ttl::from_millis(fields.ttl_ms)?,
                lock: fields.lock,
            })
        })
    }
}

impl MetaRecord {
    pub(crate) fn encode(self) -> Vec<u8> {
        write(&MetaFields { versions: VERSIONS, offset: self.offset, before: self.before })
    }

    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        read(key, value, |fields: MetaFields| {
            Ok(Self { offset: fields.offset, before: fields.before })
        })
    }
}

impl FloorRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        write(&FloorFields {
            versions: VERSIONS,
            actor: self.actor.clone(),
            reason: self.reason.clone(),
            at_ms: self.at.as_unix_millis(),
        })
    }
}

/// Strings and numbers always have a JSON form.
fn write(fields: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(fields).unwrap_or_default()
}

fn read<F: DeserializeOwned, T>(
    key: &[u8],
    value: &[u8],
    record: impl FnOnce(F) -> Result<T>,
) -> Result<T> {
    let corrupt = |why: String| {
        LockError::incident(
            Invariant::RecordsReadable,
            format!("the record at {:?} cannot be read: {why}", String::from_utf8_lossy(key)),
        )
    };
    // The error of the parser says where, not what: a session's id stays where it is.
    let versions: Versions = serde_json::from_slice(value)
        .map_err(|error| corrupt(format!("{:?} at column {}", error.classify(), error.column())))?;
    if versions.r > VERSION {
        return Err(corrupt(format!("it needs version {} of the records", versions.r)));
    }
    let fields = serde_json::from_slice(value)
        .map_err(|error| corrupt(format!("{:?} at column {}", error.classify(), error.column())))?;
    record(fields).map_err(|error| corrupt(error.detail().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dlock_domain::ErrorKind;

    fn grant() -> GrantRecord {
        GrantRecord {
            owner: OwnerId::new("Zo\u{eb} \"nightly\"").unwrap(),
            session: SessionId::from_bits(0xfeed),
            private: true,
            attempt: AttemptId::from_bits(7),
            acquired_at: WallTime::from_unix_millis(1_700_000_000_000),
            asked: Ttl::from_millis(1_500).unwrap(),
            ttl: Ttl::from_millis(2_000).unwrap(),
        }
    }

    #[test]
    fn records_come_back_as_they_went_in() {
        let grant = grant();
        assert_eq!(GrantRecord::decode(b"k", &grant.encode()).unwrap(), grant);
        let session = SessionRecord {
            owner: grant.owner,
            asked: grant.asked,
            ttl: grant.ttl,
            lock: Some("/dlock/default/lock/k".into()),
        };
        assert_eq!(SessionRecord::decode(b"k", &session.encode()).unwrap(), session);
        let meta = MetaRecord { offset: 1 << 40, before: 12 };
        assert_eq!(MetaRecord::decode(b"k", &meta.encode()).unwrap(), meta);
    }

    #[test]
    fn a_later_version_may_add_fields_and_may_refuse_to_be_read() {
        let mut fields: serde_json::Value = serde_json::from_slice(&grant().encode()).unwrap();
        fields["v"] = 2.into();
        fields["new"] = "x".into();
        assert_eq!(GrantRecord::decode(b"k", fields.to_string().as_bytes()).unwrap(), grant());
        fields["r"] = 2.into();
        let error = GrantRecord::decode(b"/dlock/k", fields.to_string().as_bytes()).unwrap_err();
        assert!(error.detail().contains("/dlock/k") && error.detail().contains("version 2"));
    }

    #[test]
    fn anything_else_is_an_incident_that_names_the_key_and_no_secret() {
        let good = String::from_utf8(grant().encode()).unwrap();
        let bad = [
            String::new(),
            "null".into(),
            "{}".into(),
            "[1]".into(),
            "\u{0}".into(),
            good.replace("\"v\":1", "\"v\":-1"),
            good.replace("2000", "1"),
            good.replace("2000", "1e999"),
            good.replace("000feed", "000fee"),
            good.replace("nightly", "\\u0007"),
            good[..good.len() - 1].to_owned(),
        ];
        for value in bad {
            let error = GrantRecord::decode(b"/dlock/k", value.as_bytes()).unwrap_err();
            let kind = ErrorKind::InvariantViolated(Invariant::RecordsReadable);
            assert_eq!(error.kind(), kind, "{value}");
            assert!(error.detail().contains("/dlock/k") && !error.detail().contains("feed"));
        }
        assert!(GrantRecord::decode(b"k", b"\xff\xfe").is_err());
    }
}
