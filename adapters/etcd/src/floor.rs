//! Raising token floors: the port [`FloorControl`].

use async_trait::async_trait;
use dlock_domain::{Deadline, LockError, Namespace, Result, TokenFloor};
use dlock_ports::{FloorControl, Raised};
use etcd_client::{DeleteOptions, Txn, TxnOp};

use crate::{Inner, codec::MetaRecord, error::Effect, numbering::Meta};

/// How often it is begun anew when somebody else raises meanwhile.
const TRIES: u32 = 8;

#[async_trait]
impl FloorControl for Inner {
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised> {
        self.wire.begin(by)?;
        let key = self.keys.meta(namespace);
        for _ in 0..TRIES {
            // Not through the gate of `numbering`: raising is what opens it.
            let get = TxnOp::get(key.clone(), None);
            let reply = self.wire.txn(Txn::new().and_then([get]), Effect::Reads, by).await?;
            let before = Meta::of(reply.one(0))?;
            let ended = self.wire.history.ended();
            // The greatest offset there ever was, which a restore may have taken away again.
            let offset = before.record.offset.max(self.numberings.greatest_offset(namespace));
            let highest = self.wire.history.highest().max(reply.revision);
            let known = number(highest)
                .saturating_add(offset)
                .max(self.numberings.required(namespace, before, &ended));
            at_least.check_leap(known)?;
            // Every later revision is greater than this one, so every later token than both.
            let needed = at_least.get().max(known).saturating_sub(number(reply.revision));
            let record = MetaRecord { offset: needed.max(offset), before: offset };
            let all = DeleteOptions::new().with_prefix();
            let txn = Txn::new()
                .when([before.compare(key.clone())])
                .and_then([
                    TxnOp::delete(self.keys.locks(namespace), Some(all)),
                    TxnOp::put(key.clone(), record.encode(), None),
                ])
                .or_else([TxnOp::get(key.clone(), None)]);
            let reply = self.wire.txn(txn, Effect::Writes, by).await?;
            if !reply.held {
                continue;
            }
            let meta = Meta { mod_revision: reply.revision, record };
            self.learn(namespace, meta);
            let (ended, _) = reply.deleted(0);
            return Ok(Raised {
                floor: meta.floor(reply.revision)?,
                grants_ended: u64::try_from(ended).unwrap_or(0),
            });
        }
        Err(LockError::contention("somebody else raises this floor again and again"))
    }
}

/// A revision as a number.
fn number(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}
