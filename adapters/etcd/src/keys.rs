//! The layout of keys (C5): what is where, and what a key found there is.
//!
//! ```text
//! <prefix>/_session/<id>             a session that a client opened, under its lease
//! <prefix>/_private/<id>             a session that lives and dies with one lock, under its lease
//! <prefix>/<namespace>/lock/<name>   a grant, under its session's lease
//! <prefix>/<namespace>/floor/<name>  the last revocation of a lock
//! <prefix>/<namespace>/dead/<holder>/<attempt>   a settled attempt
//! <prefix>/<namespace>/meta          the namespace's numbering
//! ```
//!
//! A namespace never begins with `_`, and a name comes last and whole: whatever it holds, it
//! reaches no sibling, and no lock is a prefix of another (trap 7).

use dlock_domain::{AttemptId, LockKey, LockName, Namespace, SessionId};

/// The keys of one store.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
    /// What sets the leases of this prefix apart from those of others: they have one space.
    salt: u64,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        let salt = prefix.bytes().fold(0, |salt, byte| mix(salt ^ u64::from(byte)));
        Self { prefix: prefix.to_owned(), salt }
    }

    /// The id of a session's lease: random, since the session's id is, and the same for every
    /// server, so that nobody has to look it up.
    pub(crate) fn lease(&self, id: SessionId) -> i64 {
        let [high, low] = [id.bits() >> 64, id.bits() & u128::from(u64::MAX)]
            .map(|half| u64::try_from(half).unwrap_or(0));
        let mixed = mix(self.salt ^ mix(high ^ mix(low)));
        // Positive, as etcd wants it.
        i64::try_from(mixed >> 1).unwrap_or(1).max(1)
    }

    /// What all keys begin with.
    pub(crate) fn all(&self) -> Vec<u8> {
        format!("{}/", self.prefix).into_bytes()
    }

    /// A session that a client opened.
    pub(crate) fn session(&self, id: SessionId) -> Vec<u8> {
        format!("{}/_session/{}", self.prefix, id.expose()).into_bytes()
    }

    /// A session of one lock.
    pub(crate) fn private(&self, id: SessionId) -> Vec<u8> {
        format!("{}/_private/{}", self.prefix, id.expose()).into_bytes()
    }

    /// A lock's grant.
    pub(crate) fn lock(&self, key: &LockKey) -> Vec<u8> {
        let mut bytes = self.locks(key.namespace());
        bytes.extend_from_slice(key.name().as_str().as_bytes());
        bytes
    }

    /// What all of a namespace's grants begin with.
    pub(crate) fn locks(&self, namespace: &Namespace) -> Vec<u8> {
        format!("{}/{}/lock/", self.prefix, namespace.as_str()).into_bytes()
    }

    /// A lock's floor.
    pub(crate) fn floor(&self, key: &LockKey) -> Vec<u8> {
        let (namespace, name) = (key.namespace().as_str(), key.name().as_str());
        format!("{}/{namespace}/floor/{name}", self.prefix).into_bytes()
    }

    /// The mark of an attempt that was settled for a session.
    pub(crate) fn dead(&self, namespace: &Namespace, id: SessionId, attempt: AttemptId) -> Vec<u8> {
        let mut bytes = self.dead_of(namespace, id);
        bytes.extend_from_slice(attempt.to_string().as_bytes());
        bytes
    }

    /// What all marks of a session in a namespace begin with.
    pub(crate) fn dead_of(&self, namespace: &Namespace, id: SessionId) -> Vec<u8> {
        format!("{}/{}/dead/{}/", self.prefix, namespace.as_str(), id.expose()).into_bytes()
    }

    /// The mark of an attempt that was settled for a lock with a session of its own: it must stand
    /// whichever session a late copy would make.
    pub(crate) fn dead_private(&self, namespace: &Namespace, attempt: AttemptId) -> Vec<u8> {
        format!("{}/{}/dead/private/{attempt}", self.prefix, namespace.as_str()).into_bytes()
    }

    /// A namespace's numbering.
    pub(crate) fn meta(&self, namespace: &Namespace) -> Vec<u8> {
        format!("{}/{}/meta", self.prefix, namespace.as_str()).into_bytes()
    }

    /// Whether this is a lock's grant; cheaper than to ask which.
    pub(crate) fn is_lock(&self, key: &[u8]) -> bool {
        let rest = key.strip_prefix(self.prefix.as_bytes()).and_then(|rest| rest.split_first());
        let parts = rest.map(|(_, rest)| rest.split(|byte| *byte == b'/'));
        parts.and_then(|mut parts| parts.nth(1)).is_some_and(|kind| kind == b"lock")
    }

    /// Which lock this is the grant of; `None` for every other key.
    pub(crate) fn parse_lock(&self, key: &[u8]) -> Option<LockKey> {
        let text = std::str::from_utf8(key).ok()?;
        let rest = text.strip_prefix(self.prefix.as_str())?.strip_prefix('/')?;
        let (namespace, rest) = rest.split_once('/')?;
        let name = rest.strip_prefix("lock/")?;
        Some(LockKey::new(Namespace::new(namespace).ok()?, LockName::new(name).ok()?))
    }
}

/// A bijection that spreads what differs in a few bits only.
const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn lease_ids_are_positive_stable_and_apart() {
        let ids = (1..1_000_u128).flat_map(|n| [n, n << 64, (n << 64) | n, u128::MAX - n]);
        let ids: HashSet<SessionId> = ids.map(SessionId::from_bits).collect();
        let keys = ["/dlock", "/dlock2", "/"].map(Keys::new);
        let leases: HashSet<i64> =
            keys.iter().flat_map(|keys| ids.iter().map(|id| keys.lease(*id))).collect();
        assert_eq!(leases.len(), ids.len() * keys.len());
        assert!(leases.iter().all(|lease| *lease > 0));
        // Two versions of dlock on one cluster must agree: this number never changes.
        let id = SessionId::from_bits(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        assert_eq!(keys[0].lease(id), 1_574_083_054_557_990_779);
    }

    fn key(namespace: &str, name: &str) -> LockKey {
        LockKey::new(Namespace::new(namespace).unwrap(), LockName::new(name).unwrap())
    }

    #[test]
    fn trap_07_a_lock_is_found_again_and_nothing_else_is_a_lock() {
        let keys = Keys::new("/dlock");
        for name in ["a", "a/", "a/b", "/a", "//", "lock/a", "../x", "%2F", "\u{1f980}"] {
            let lock = key("default", name);
            assert_eq!(keys.parse_lock(&keys.lock(&lock)), Some(lock.clone()), "{name}");
            assert!(keys.is_lock(&keys.lock(&lock)) && !keys.is_lock(&keys.floor(&lock)));
            assert_eq!(keys.parse_lock(&keys.floor(&lock)), None);
        }
        let namespace = Namespace::new("default").unwrap();
        let id = SessionId::from_bits(7);
        let attempt = AttemptId::from_bits(8);
        for other in [
            keys.session(id),
            keys.private(id),
            keys.dead(&namespace, id, attempt),
            keys.dead_private(&namespace, attempt),
            keys.meta(&namespace),
            keys.all(),
            b"/elsewhere/default/lock/a".to_vec(),
            b"/dlock/_session/lock/a".to_vec(),
            b"/dlock/default/lock/".to_vec(),
            b"/dlock/default/lock/\xff".to_vec(),
        ] {
            let is_lock = keys.is_lock(&other) && keys.parse_lock(&other).is_some();
            assert!(!is_lock, "{}", String::from_utf8_lossy(&other));
            assert_eq!(keys.parse_lock(&other), None, "{}", String::from_utf8_lossy(&other));
        }
    }

    #[test]
    fn no_two_things_share_a_key() {
        let keys = Keys::new("/dlock");
        let namespace = Namespace::new("a").unwrap();
        let (id, attempt) = (SessionId::from_bits(1), AttemptId::from_bits(1));
        let all = [
            keys.session(id),
            keys.private(id),
            keys.lock(&key("a", "meta")),
            keys.floor(&key("a", "meta")),
            keys.dead(&namespace, id, attempt),
            keys.dead_private(&namespace, attempt),
            keys.meta(&namespace),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(all.iter().skip(n + 1).all(|other| other != one));
        }
    }
}
