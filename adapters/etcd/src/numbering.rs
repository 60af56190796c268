//! Revisions and tokens: a token is a revision of the cluster plus the namespace's offset.
//!
//! The offset is 0 until somebody raises the namespace's floor. A server remembers it, so every
//! transaction that maps a token also compares that the namespace's `meta` is the one whose offset
//! it used; where it is not, the transaction does nothing and its answer brings the new one
//! (trap 15).

use std::{
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use dlock_domain::{FencingToken, Invariant, LockError, Namespace, Result, TokenFloor};
use etcd_client::{Compare, CompareOp};
use lru::LruCache;

use crate::{codec::MetaRecord, history::Ended, wire::Kv};

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

/// What outlives this process of what it remembers of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Heard {
    pub(crate) namespace: Namespace,
    /// The greatest offset that was ever seen.
    pub(crate) offset: u64,
    /// What its floor must reach.
    pub(crate) required: u64,
}

/// What this process remembers of a namespace.
#[derive(Clone, Copy, Debug, Default)]
struct Remembered {
    /// Its numbering as last seen; `None`: it was only heard of.
    meta: Option<Meta>,
    /// The greatest offset that was ever seen.
    offset: u64,
    /// Of how many ended epochs `required` knows.
    epochs: usize,
    /// What its floor must reach: the numbers of epochs that have ended.
    required: u64,
}

impl Remembered {
    /// Takes in the epochs that have ended since: whatever was granted in them has a number up to
    /// their highest revision and the greatest offset of that time.
    fn catch_up(&mut self, ended: &[Ended]) {
        for epoch in ended.iter().skip(self.epochs) {
            let highest = u64::try_from(epoch.highest).unwrap_or(0).saturating_add(self.offset);
            self.required = self.required.max(highest);
        }
        self.epochs = ended.len();
    }
}

/// What this process remembers of namespaces' numberings.
pub(crate) struct Numberings(Mutex<LruCache<Namespace, Remembered>>);

impl Numberings {
    /// `heard`: from an earlier life, which had seen so many epochs end.
    pub(crate) fn new(heard: impl IntoIterator<Item = Heard>, epochs: usize) -> Self {
        let mut cache = LruCache::new(REMEMBERED);
        for Heard { namespace, offset, required } in heard {
            cache.put(namespace, Remembered { meta: None, offset, epochs, required });
        }
        Self(Mutex::new(cache))
    }

    /// The numbering as last seen.
    pub(crate) fn recall(&self, namespace: &Namespace) -> Option<Meta> {
        self.lock().get(namespace).and_then(|remembered| remembered.meta)
    }

    /// A numbering was seen.
    pub(crate) fn learn(&self, namespace: &Namespace, meta: Meta, ended: &[Ended]) {
        let mut cache = self.lock();
        let remembered = cache.get_or_insert_mut(namespace.clone(), || Remembered {
            epochs: ended.len(),
            required: required_of_a_stranger(meta, ended),
            ..Remembered::default()
        });
        remembered.catch_up(ended);
        remembered.meta = Some(meta);
        remembered.offset = remembered.offset.max(meta.record.offset);
    }

    /// What the namespace's floor must reach before anything is granted in it; 0 as long as the
    /// cluster never went back.
    pub(crate) fn required(&self, namespace: &Namespace, meta: Meta, ended: &[Ended]) -> u64 {
        match self.lock().get_mut(namespace) {
            Some(remembered) => {
                remembered.catch_up(ended);
                remembered.required
            }
            None => required_of_a_stranger(meta, ended),
        }
    }

    /// The greatest offset that was ever seen of it.
    pub(crate) fn greatest_offset(&self, namespace: &Namespace) -> u64 {
        self.lock().get(namespace).map_or(0, |remembered| remembered.offset)
    }

    /// All that are remembered, in the order of their names.
    pub(crate) fn heard(&self, ended: &[Ended]) -> Vec<Heard> {
        let mut cache = self.lock();
        let mut heard: Vec<Heard> = cache
            .iter_mut()
            .map(|(namespace, known)| {
                known.catch_up(ended);
                let (offset, required) = (known.offset, known.required);
                Heard { namespace: namespace.clone(), offset, required }
            })
            .collect();
        heard.sort();
        heard
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Namespace, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of a namespace that this process never saw before the cluster went back, it only knows what lies
/// there now. If that was certainly written afterwards it names the offset of the time before; else
/// it may be the restored one, and the whole of it counts: another raise tells them apart.
fn required_of_a_stranger(meta: Meta, ended: &[Ended]) -> u64 {
    let Some(last) = ended.last() else { return 0 };
    let written_since = meta.mod_revision > last.next_began;
    let offset = if written_since { meta.record.before } else { meta.record.offset };
    u64::try_from(last.highest).unwrap_or(0).saturating_add(offset)
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
        let raised = Meta { mod_revision: 20, record: MetaRecord { offset: 1_000, before: 0 } };
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
        let record = MetaRecord { offset: FencingToken::MAX, before: 0 };
        let full = Meta { mod_revision: 1, record };
        assert!(full.token(1).is_err() && full.floor(1).is_err());
    }

    #[test]
    fn trap_15_a_floor_must_reach_what_every_ended_epoch_gave_out() {
        let namespace = Namespace::new("default").unwrap();
        let meta = |mod_revision, offset, before| Meta {
            mod_revision,
            record: MetaRecord { offset, before },
        };
        let first = [Ended { highest: 648, next_began: 588 }];
        let both = [first[0], Ended { highest: 700, next_began: 600 }];
        let known = Numberings::new([], 0);
        known.learn(&namespace, Meta::default(), &[]);
        assert_eq!(known.required(&namespace, Meta::default(), &[]), 0);
        assert_eq!(known.required(&namespace, Meta::default(), &first), 648);
        // Raised, granted in, and set back once more: the greater offset counts.
        known.learn(&namespace, meta(589, 1_000_000, 0), &first);
        assert_eq!(known.required(&namespace, meta(589, 1_000_000, 0), &first), 648);
        // Heard of from an earlier life.
        let again = Numberings::new(known.heard(&first), 1);
        assert_eq!(again.required(&namespace, Meta::default(), &first), 648);
        assert_eq!(again.required(&namespace, Meta::default(), &both), 1_000_700);
        assert_eq!(known.required(&namespace, Meta::default(), &both), 1_000_700);
        assert_eq!(known.greatest_offset(&namespace), 1_000_000);
        // A stranger: what may have been restored counts whole, what was written since does not.
        let stranger = Numberings::new([], 0);
        assert_eq!(stranger.required(&namespace, meta(500, 50, 0), &first), 698);
        assert_eq!(stranger.required(&namespace, meta(589, 1_000, 50), &first), 698);
        assert_eq!(stranger.required(&namespace, meta(0, 0, 0), &first), 648);
    }
}
