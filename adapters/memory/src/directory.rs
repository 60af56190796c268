//! Listing live locks: the port [`Directory`].

use std::ops::Bound;

use async_trait::async_trait;
use dlock_domain::{Deadline, LockKey, LockName, Result};
use dlock_ports::{Directory, ListRequest, Page};

use crate::{At, MemoryStore, state::State};

#[async_trait]
impl Directory for MemoryStore {
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page> {
        self.enter(by, |state, at| Ok(state.list(&request, at)))
    }
}

impl State {
    fn list(&self, request: &ListRequest, at: At) -> Page {
        let ListRequest { namespace, prefix, after, limit } = request;
        let empty = Page { locks: Vec::new(), next: None };
        let Some(locks) = self.locks.get(namespace) else { return empty };
        let first = if prefix.is_empty() {
            None
        } else if let Ok(name) = LockName::new(prefix) {
            Some(name)
        } else {
            // No name begins with what cannot stand in a name.
            return empty;
        };
        let from = match (after, &first) {
            (Some(after), Some(first)) if after < first => Bound::Included(first),
            (Some(after), _) => Bound::Excluded(after),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        let most = usize::from(*limit).max(1);
        let mut found: Vec<_> = locks
            .range((from, Bound::Unbounded))
            .take_while(|(name, _)| name.as_str().starts_with(&**prefix))
            .filter_map(|(name, lock)| {
                let grant = lock.grant()?;
                let row = self.live_holder(grant, at.now)?;
                let key = LockKey::new(namespace.clone(), name.clone());
                Some(self.info(&key, grant, row, at))
            })
            .take(most + 1)
            .collect();
        let more = found.len() > most;
        found.truncate(most);
        let next = found.last().filter(|_| more).map(|info| info.key.name().clone());
        Page { locks: found, next }
    }
}
