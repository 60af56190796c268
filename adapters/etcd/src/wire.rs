//! The one place through which everything goes to etcd and comes back.
//!
//! Every call is bounded by its deadline, every answer is in this crate's own words, and every
//! linearizable answer is compared with the highest revision known when its request left: a cluster
//! that has gone back in its history is noticed here (trap 15).

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use dlock_domain::{Deadline, LockError, Moment};
use dlock_ports::Clock;
use etcd_client::{
    Client, GetOptions, KeyValue, KvClient, LeaseClient, LeaseGrantOptions, LeaseTimeToLiveOptions,
    Txn, TxnOpResponse, TxnResponse, WatchClient,
};

use crate::{
    config::EtcdConfig,
    error::{self, Effect, Fail},
};

/// The longest answer that is read: a full page of the longest records is a tenth of it.
const LONGEST_ANSWER: usize = 32 << 20;

/// A connected cluster.
pub(crate) struct Wire {
    kv: KvClient,
    leases: LeaseClient,
    /// On a channel of its own: a flood of transactions does not hold up a keep-alive.
    beats: LeaseClient,
    watches: WatchClient,
    pub(crate) clock: Arc<dyn Clock>,
    highest: AtomicI64,
    /// The highest revision known when an answer was lower; 0: never.
    went_back_from: AtomicI64,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Kv {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    pub(crate) mod_revision: i64,
    pub(crate) lease: i64,
}

/// What one operation of a transaction came to.
#[derive(Debug)]
pub(crate) enum Op {
    Put,
    Found { kvs: Vec<Kv>, count: i64 },
    Deleted { count: i64, before: Vec<Kv> },
}

/// A transaction's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) revision: i64,
    pub(crate) term: u64,
    /// Whether all comparisons held.
    pub(crate) held: bool,
    pub(crate) ops: Vec<Op>,
}

/// A keep-alive's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    /// Before its request left.
    pub(crate) sent: Moment,
    /// The lease's whole lifetime again, in seconds.
    pub(crate) seconds: i64,
    pub(crate) term: u64,
}

/// What is left of a lease.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    /// Before the question left.
    pub(crate) sent: Moment,
    /// At least so many seconds.
    pub(crate) seconds: i64,
    pub(crate) term: u64,
    /// What is attached to it, if asked for.
    pub(crate) keys: Vec<Vec<u8>>,
}

impl Reply {
    /// What the nth operation found, if it found one.
    pub(crate) fn one(&self, n: usize) -> Option<&Kv> {
        self.all(n).first()
    }

    /// All that the nth operation found.
    pub(crate) fn all(&self, n: usize) -> &[Kv] {
        match self.ops.get(n) {
            Some(Op::Found { kvs, .. }) => kvs,
            _ => &[],
        }
    }

    /// How many keys the nth operation found.
    pub(crate) fn count(&self, n: usize) -> i64 {
        match self.ops.get(n) {
            Some(Op::Found { count, .. }) => *count,
            _ => 0,
        }
    }

    /// What the nth operation deleted.
    pub(crate) fn deleted(&self, n: usize) -> (i64, Option<&Kv>) {
        match self.ops.get(n) {
            Some(Op::Deleted { count, before }) => (*count, before.first()),
            _ => (0, None),
        }
    }
}

impl Wire {
    /// Connects; no member need be there yet. `highest`: the highest revision that is known already.
    ///
    /// # Errors
    /// An address that is none, a certificate that is none, a user who is not let in.
    pub(crate) async fn connect(
        config: &EtcdConfig,
        highest: i64,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, etcd_client::Error> {
        let calls = Client::connect(&config.endpoints, Some(config.options())).await?;
        let streams = Client::connect(&config.endpoints, Some(config.options())).await?;
        Ok(Self {
            kv: calls.kv_client().max_decoding_message_size(LONGEST_ANSWER),
            leases: calls.lease_client(),
            beats: streams.lease_client(),
            watches: streams.watch_client().max_decoding_message_size(LONGEST_ANSWER),
            clock,
            highest: AtomicI64::new(highest),
            went_back_from: AtomicI64::new(0),
        })
    }

    /// A client for the watch.
    pub(crate) fn watches(&self) -> WatchClient {
        self.watches.clone()
    }

    /// The highest revision known.
    pub(crate) fn highest(&self) -> i64 {
        self.highest.load(Ordering::SeqCst)
    }

    /// The highest revision known before the cluster went back in its history; `None`: it never did
    /// while this process looked on.
    pub(crate) fn went_back_from(&self) -> Option<i64> {
        Some(self.went_back_from.load(Ordering::SeqCst)).filter(|revision| *revision > 0)
    }

    /// One transaction. Its reads are linearizable, its writes all happen or none.
    ///
    /// # Cancellation
    /// A transaction that was sent may still be committed, any time later (trap 12).
    pub(crate) async fn txn(&self, txn: Txn, effect: Effect, by: Deadline) -> Result<Reply, Fail> {
        let known = self.highest();
        let mut kv = self.kv.clone();
        let answer = self.call(by, effect, kv.txn(txn)).await?;
        let reply = reply(answer, effect)?;
        self.compare(known, reply.revision);
        Ok(reply)
    }

    /// One read of the nearest member's copy, which may be late.
    pub(crate) async fn peek(&self, key: &[u8], by: Deadline) -> Result<Option<Kv>, Fail> {
        let mut kv = self.kv.clone();
        let options = GetOptions::new().with_serializable();
        let answer = self.call(by, Effect::Reads, kv.get(key, Some(options))).await?;
        Ok(answer.kvs().first().map(Kv::of))
    }

    /// Grants a lease of at least so many seconds under an id of the caller's; answers how many,
    /// and the moment before the request left.
    pub(crate) async fn grant(
        &self,
        lease: i64,
        seconds: i64,
        by: Deadline,
    ) -> Result<(Moment, i64), Fail> {
        let mut leases = self.leases.clone();
        let sent = self.clock.now();
        let options = LeaseGrantOptions::new().with_id(lease);
        let answer = self.call(by, Effect::Writes, leases.grant(seconds, Some(options))).await?;
        Ok((sent, answer.ttl()))
    }

    /// Ends a lease with everything attached to it; `false` if it was not there.
    pub(crate) async fn revoke(&self, lease: i64, by: Deadline) -> Result<bool, LockError> {
        let mut leases = self.leases.clone();
        match self.call(by, Effect::Writes, leases.revoke(lease)).await {
            Ok(_) => Ok(true),
            Err(Fail::NoLease) => Ok(false),
            Err(other) => Err(other.into_error()),
        }
    }

    /// Gives a lease its whole lifetime again; `None`: whoever answered knows no such lease.
    ///
    /// The driver reads the first answer of a stream and keeps only that it was one, so a second
    /// beat is sent, whose answer can be read.
    pub(crate) async fn beat(&self, lease: i64, by: Deadline) -> Result<Option<Beat>, LockError> {
        let mut beats = self.beats.clone();
        let beating = async {
            let (mut keeper, mut answers) = beats.keep_alive(lease).await?;
            let sent = self.clock.now();
            keeper.keep_alive().await?;
            Ok((sent, answers.message().await?))
        };
        match self.call(by, Effect::Reads, beating).await {
            Ok((sent, Some(answer))) => {
                let header = answer.header();
                let term = header.map(etcd_client::ResponseHeader::raft_term);
                let term = term.ok_or_else(|| error::malformed("a header", Effect::Reads))?;
                let seconds = answer.ttl();
                Ok((seconds > 0).then_some(Beat { sent, seconds, term }))
            }
            Ok((_, None)) => Err(LockError::contention("etcd ended the stream of keep-alives")),
            Err(Fail::NoLease) => Ok(None),
            Err(other) => Err(other.into_error()),
        }
    }

    /// What is left of a lease; `None`: whoever answered knows no such lease.
    pub(crate) async fn rest(
        &self,
        lease: i64,
        with_keys: bool,
        by: Deadline,
    ) -> Result<Option<Rest>, LockError> {
        let mut leases = self.leases.clone();
        let sent = self.clock.now();
        let options = with_keys.then(|| LeaseTimeToLiveOptions::new().with_keys());
        let asking = leases.time_to_live(lease, options);
        match self.call(by, Effect::Reads, asking).await {
            Ok(answer) if answer.ttl() < 0 => Ok(None),
            Ok(answer) => {
                let header = answer.header();
                let term = header.map(etcd_client::ResponseHeader::raft_term);
                let term = term.ok_or_else(|| error::malformed("a header", Effect::Reads))?;
                Ok(Some(Rest { sent, seconds: answer.ttl(), term, keys: answer.keys().to_vec() }))
            }
            Err(Fail::NoLease) => Ok(None),
            Err(other) => Err(other.into_error()),
        }
    }

    /// Bounds a call by its deadline; one that is past is not begun.
    async fn call<T>(
        &self,
        by: Deadline,
        effect: Effect,
        call: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, Fail> {
        self.begin(by)?;
        // Dropping the call leaves it unknown whether it was done, and the answer says so.
        tokio::select! {
            biased;
            answer = call => answer.map_err(|error| error::map(error, effect)),
            () = self.clock.sleep_until(by.moment()) => {
                let late = LockError::contention("etcd did not answer before the deadline");
                Err(Fail::Other(error::with(late, effect)))
            }
        }
    }

    /// Refuses what could not be done in time any more.
    pub(crate) fn begin(&self, by: Deadline) -> Result<(), LockError> {
        if by.is_past(self.clock.now()) {
            return Err(LockError::contention("the deadline passed before the call began"));
        }
        Ok(())
    }

    /// Going back is only seen against what was known before the request left: answers overtake
    /// each other.
    fn compare(&self, known: i64, revision: i64) {
        if revision < known {
            let before = self.went_back_from.fetch_max(known, Ordering::SeqCst);
            if before < known {
                tracing::error!(
                    event = "lock_incident",
                    known,
                    revision,
                    "the cluster has gone back in its history: no lock is granted until the floor \
                     is raised"
                );
            }
        }
        self.highest.fetch_max(revision, Ordering::SeqCst);
    }
}

impl Kv {
    fn of(kv: &KeyValue) -> Self {
        Self {
            key: kv.key().to_vec(),
            value: kv.value().to_vec(),
            mod_revision: kv.mod_revision(),
            lease: kv.lease(),
        }
    }
}

fn reply(answer: TxnResponse, effect: Effect) -> Result<Reply, LockError> {
    let header = answer.header().ok_or_else(|| error::malformed("a header", effect))?;
    let (revision, term) = (header.revision(), header.raft_term());
    let op = |op: TxnOpResponse| match op {
        TxnOpResponse::Put(_) | TxnOpResponse::Txn(_) => Op::Put,
        TxnOpResponse::Get(found) => {
            Op::Found { kvs: found.kvs().iter().map(Kv::of).collect(), count: found.count() }
        }
        TxnOpResponse::Delete(deleted) => Op::Deleted {
            count: deleted.deleted(),
            before: deleted.prev_kvs().iter().map(Kv::of).collect(),
        },
    };
    let ops = answer.op_responses().into_iter().map(op).collect();
    Ok(Reply { revision, term, held: answer.succeeded(), ops })
}
