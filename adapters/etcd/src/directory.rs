//! Listing live locks: the port [`Directory`].

use async_trait::async_trait;
use dlock_domain::{Deadline, LockInfo, Result};
use dlock_ports::{Directory, ListRequest, Page};
use etcd_client::{GetOptions, SortOrder, SortTarget, Txn, TxnOp};
use tokio::task::JoinSet;

use crate::{Inner, codec::GrantRecord, error::Effect, numbering::Meta, wire::Kv};

/// How many leases are asked about at once.
const AT_ONCE: usize = 16;

#[async_trait]
impl Directory for Inner {
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page> {
        self.wire.begin(by)?;
        let ListRequest { namespace, prefix, after, limit } = request;
        let most = usize::from(limit).max(1);
        let locks = self.keys.locks(&namespace);
        let with = |name: &str| [locks.as_slice(), name.as_bytes()].concat();
        let first = with(&prefix);
        // The key right after a key is that key and a zero byte.
        let start = after.map_or(first.clone(), |after| {
            let mut next = with(after.as_str());
            next.push(0);
            next.max(first.clone())
        });
        let end = end_of_prefix(&first);
        if start >= end {
            return Ok(Page { locks: Vec::new(), next: None });
        }
        let options = GetOptions::new()
            .with_range(end)
            .with_sort(SortTarget::Key, SortOrder::Ascend)
            .with_limit(i64::try_from(most + 1).unwrap_or(i64::MAX));
        let gets = [TxnOp::get(start, Some(options)), TxnOp::get(self.keys.meta(&namespace), None)];
        let reply = self.wire.txn(Txn::new().and_then(gets), Effect::Reads, by).await?;
        let meta = Meta::of(reply.one(1))?;
        let found = reply.all(0);
        let listed = found.get(..most.min(found.len())).unwrap_or(found);
        let next = (found.len() > most).then(|| listed.last()).flatten();
        let next = next.and_then(|kv| self.keys.parse_lock(&kv.key)).map(|key| key.name().clone());
        Ok(Page { locks: self.infos(listed, meta, by).await?, next })
    }
}

impl Inner {
    /// What the found keys show, each with what is left of its lease.
    async fn infos(&self, found: &[Kv], meta: Meta, by: Deadline) -> Result<Vec<LockInfo>> {
        let mut infos = Vec::with_capacity(found.len());
        for some in found.chunks(AT_ONCE) {
            let mut asking = JoinSet::new();
            for (n, kv) in some.iter().enumerate() {
                let (wire, lease) = (std::sync::Arc::clone(&self.wire), kv.lease);
                asking.spawn(async move { (n, wire.rest(lease, false, by).await) });
            }
            let mut rests = vec![None; some.len()];
            while let Some(Ok((n, rest))) = asking.join_next().await {
                if let Some(place) = rests.get_mut(n) {
                    *place = rest?;
                }
            }
            for (kv, rest) in some.iter().zip(rests) {
                let (Some(rest), Some(key)) = (rest, self.keys.parse_lock(&kv.key)) else {
                    continue;
                };
                let record = GrantRecord::decode(&kv.key, &kv.value)?;
                infos.push(self.seen(key, kv, record, meta, &rest)?);
            }
        }
        Ok(infos)
    }
}

/// The first key after all that begin so. Ours begin with text, whose last byte is never 255.
fn end_of_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end
}
