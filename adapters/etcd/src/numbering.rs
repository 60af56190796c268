//! Revisions and tokens: a token is a revision of the cluster plus the namespace's offset.
//!
//! The offset is 0 until somebody raises the namespace's floor. A server remembers it, so every
//! transaction that maps a token also compares that the namespace's `meta` is the one whose offset
//! it used; where it is not, the transaction does nothing and its answer brings the new one
//! (trap 15).

use std::{
    num::NonZeroUsize,
    sync::{Mutex, PoisonError},
};

use dlock_domain::{FencingToken, Invariant, LockError, Namespace, Result, TokenFloor};
use etcd_client::{Compare, CompareOp};
use lru::LruCache;

use crate::{codec::MetaRecord, wire::Kv};

/// How many namespaces' offsets are remembered; any other costs one read.
const REMEMBERED: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_095);

/// A namespace's numbering, as of some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// 0: the namespace has none yet.
    pub(crate) mod_revision: i64,
    pub(crate) record: MetaRecord,
}

impl Meta {
    /// What a read of the key found.
    pub(crate) fn of(found: Option<&Kv>) -> Result<Self> {
        let Some(kv) = found else { return Ok(Self::default()) };
        let record = MetaRecord::decode(&kv.key, &kv.value)?;
        Ok(Self { mod_revision: kv.mod_revision, record })
    }

    /// Holds as long as nobody changed the numbering.
    pub(crate) fn compare(&self, key: Vec<u8>) -> Compare {
        Compare::mod_revision(key, CompareOp::Equal, self.mod_revision)
    }

    /// The number of a revision.
    pub(crate) fn number(&self, revision: i64) -> u64 {
        u64::try_from(revision).unwrap_or(0).saturating_add(self.record.offset)
    }

    /// The token of a granting revision.
    pub(crate) fn token(&self, revision: i64) -> Result<FencingToken> {
        FencingToken::from_store(self.number(revision))
    }

    /// The floor that this revision sets.
    pub(crate) fn floor(&self, revision: i64) -> Result<TokenFloor> {
        TokenFloor::new(self.number(revision)).map_err(|_| {
            let text = "the namespace's tokens are used up: its offset is too great";
            LockError::incident(Invariant::TokensRise, text)
        })
    }

    /// What the namespace's own record sets: every token is greater.
    pub(crate) fn namespace_floor(&self) -> u64 {
        if self.mod_revision == 0 { 0 } else { self.number(self.mod_revision) }
    }

    /// The revision that granted this token; one that no key ever has where there is none.
    pub(crate) fn revision(&self, token: FencingToken) -> i64 {
        const NONE: i64 = -1;
        let revision = token.get().checked_sub(self.record.offset);
        revision
            .and_then(|revision| i64::try_from(revision).ok())
            .filter(|r| *r > 0)
            .unwrap_or(NONE)
    }
}

/// What this process remembers of namespaces' numberings.
pub(crate) struct Numberings(Mutex<LruCache<Namespace, Meta>>);

impl Numberings {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }

    pub(crate) fn recall(&self, namespace: &Namespace) -> Option<Meta> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(namespace).copied()
    }

    pub(crate) fn learn(&self, namespace: &Namespace, meta: Meta) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(namespace.clone(), meta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_15_numbers_and_revisions_map_both_ways() {
        let token = |number| FencingToken::from_user(number).unwrap();
        let plain = Meta::default();
        assert_eq!(plain.token(12).unwrap(), token(12));
        assert_eq!(plain.revision(token(12)), 12);
        let raised = Meta { mod_revision: 20, record: MetaRecord { offset: 1_000, over: 20 } };
        assert_eq!(raised.token(21).unwrap(), token(1_021));
        assert_eq!(raised.revision(token(1_021)), 21);
        assert_eq!(raised.namespace_floor(), 1_020);
        // Tokens of the old numbering have no revision in the new one: -1 is never a key's.
        for old in [1, 12, 1_000] {
            assert_eq!(raised.revision(token(old)), -1, "{old}");
        }
    }

    #[test]
    fn inv04_numbers_that_are_used_up_are_an_incident() {
        let record = MetaRecord { offset: FencingToken::MAX, over: 0 };
        let full = Meta { mod_revision: 1, record };
        assert!(full.token(1).is_err() && full.floor(1).is_err());
    }
}
