//! The one place through which everything goes to etcd and comes back.
//!
//! Every call is bounded by its deadline, every answer is in this crate's own words, a call that
//! cannot have been done is made again at another member, and every linearizable answer is compared
//! with the highest revision known when its request left: a cluster that has gone back in its history
//! is noticed here (trap 15).

use std::{future::Future, sync::Arc, time::Duration};

use dlock_domain::{Deadline, ErrorKind, LockError, Moment};
use dlock_ports::Clock;
use etcd_client::{
    Client, Error, GetOptions, KeyValue, LeaseGrantOptions, LeaseTimeToLiveOptions, Txn,
    TxnOpResponse, TxnResponse,
};

use crate::{
    config::EtcdConfig,
    error::{self, Effect, Fail},
    history::History,
    members::{Line, Members},
};

/// The longest answer that is read: a full page of the longest records is a tenth of it.
pub(crate) const LONGEST_ANSWER: usize = 32 << 20;

/// The shortest time that a member is given to answer a read before another is asked.
const SHORTEST_TRY: Duration = Duration::from_millis(250);

/// A cluster.
pub(crate) struct Wire {
    pub(crate) members: Members,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) history: History,
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
    /// Its whole lifetime, in seconds.
    pub(crate) whole: i64,
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
    /// A cluster of which no member need be there yet.
    ///
    /// # Errors
    /// An address that is none, a certificate that is none, a user who is not let in.
    pub(crate) async fn connect(
        config: &EtcdConfig,
        history: History,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let members = Members::of(config)?;
        // What can be found out now is: whether the addresses are some, and from the first that answers
        // whether the user is let in.
        for member in 0..members.count() {
            match members.client(member, Line::Calls).await {
                Ok(_) if config.user.is_none() => {}
                Ok(_) => break,
                Err(error) if error::is_transport(&error) => members.leave(member),
                Err(error) => return Err(error),
            }
        }
        Ok(Self { members, clock, history })
    }

    /// One transaction. Its reads are linearizable, its writes all happen or none.
    ///
    /// # Cancellation
    /// A transaction that was sent may still be committed, any time later (trap 12).
    pub(crate) async fn txn(&self, txn: Txn, effect: Effect, by: Deadline) -> Result<Reply, Fail> {
        self.txn_on(Line::Calls, txn, effect, by).await
    }

    /// The same on a line of the caller's choice.
    pub(crate) async fn txn_on(
        &self,
        line: Line,
        txn: Txn,
        effect: Effect,
        by: Deadline,
    ) -> Result<Reply, Fail> {
        let known = self.history.known();
        let send = |client: Client| {
            let txn = txn.clone();
            let mut kv = client.kv_client().max_decoding_message_size(LONGEST_ANSWER);
            async move { kv.txn(txn).await }
        };
        let answer = self.call(line, by, effect, send).await?;
        let reply = reply(answer, effect)?;
        if let Some(ended) = self.history.answered(known, reply.revision) {
            tracing::error!(
                event = "lock_incident",
                known = ended.highest,
                revision = reply.revision,
                "etcd has gone back in its history: no lock is granted until the floor is raised"
            );
        }
        Ok(reply)
    }

    /// One read of the nearest member's copy, which may be late.
    pub(crate) async fn peek(&self, key: &[u8], by: Deadline) -> Result<Option<Kv>, Fail> {
        let read = |client: Client| {
            let (key, mut kv) = (key.to_vec(), client.kv_client());
            async move { kv.get(key, Some(GetOptions::new().with_serializable())).await }
        };
        let answer = self.call(Line::Calls, by, Effect::Reads, read).await?;
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
        let grant = |client: Client| {
            let (mut leases, sent) = (client.lease_client(), self.clock.now());
            async move {
                let options = LeaseGrantOptions::new().with_id(lease);
                Ok((sent, leases.grant(seconds, Some(options)).await?))
            }
        };
        let (sent, answer) = self.call(Line::Calls, by, Effect::Writes, grant).await?;
        Ok((sent, answer.ttl()))
    }

    /// Ends a lease with everything attached to it; `false` if it was not there.
    pub(crate) async fn revoke(&self, lease: i64, by: Deadline) -> Result<bool, LockError> {
        let revoke = |client: Client| {
            let mut leases = client.lease_client();
            async move { leases.revoke(lease).await }
        };
        match self.call(Line::Calls, by, Effect::Writes, revoke).await {
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
        let beat = |client: Client| {
            let mut leases = client.lease_client();
            async move {
                let (mut keeper, mut answers) = leases.keep_alive(lease).await?;
                let sent = self.clock.now();
                keeper.keep_alive().await?;
                Ok((sent, answers.message().await?))
            }
        };
        match self.call(Line::Beats, by, Effect::Reads, beat).await {
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

    /// What is left of a lease; `None`: whoever answered knows no such lease, or one that has ended
    /// and is about to be taken away. Its term is the asked member's: the answer may be a leader's who
    /// is none any more, which is why it never counts for more than the lifetime that was set.
    pub(crate) async fn rest(
        &self,
        lease: i64,
        with_keys: bool,
        by: Deadline,
    ) -> Result<Option<Rest>, LockError> {
        let ask = |client: Client| {
            let (mut leases, sent) = (client.lease_client(), self.clock.now());
            async move {
                let options = with_keys.then(|| LeaseTimeToLiveOptions::new().with_keys());
                Ok((sent, leases.time_to_live(lease, options).await?))
            }
        };
        match self.call(Line::Calls, by, Effect::Reads, ask).await {
            Ok((_, answer)) if answer.ttl() < 0 => Ok(None),
            Ok((sent, answer)) => {
                let header = answer.header();
                let term = header.map(etcd_client::ResponseHeader::raft_term);
                let term = term.ok_or_else(|| error::malformed("a header", Effect::Reads))?;
                let (seconds, whole) = (answer.ttl(), answer.granted_ttl());
                Ok(Some(Rest { sent, seconds, whole, term, keys: answer.keys().to_vec() }))
            }
            Err(Fail::NoLease) => Ok(None),
            Err(other) => Err(other.into_error()),
        }
    }

    /// Makes a call at the member that is spoken to. Where it cannot have been done, since nothing was
    /// sent or it only reads, the next members are tried; where nobody knows, the answer says so, and
    /// later calls go to another.
    async fn call<T, F: Future<Output = Result<T, Error>>>(
        &self,
        line: Line,
        by: Deadline,
        effect: Effect,
        make: impl Fn(Client) -> F,
    ) -> Result<T, Fail> {
        self.begin(by)?;
        let (first, count) = (self.members.current(), self.members.count());
        let mut last = None;
        for step in 0..count {
            let now = self.clock.now();
            if step > 0 && by.is_past(now) {
                break;
            }
            let member = (first + step) % count;
            let until = self.until(by, now, effect, count - step);
            let call = async { make(self.members.client(member, line).await?).await };
            // Dropping the call leaves it unknown whether it was done, and the answer says so.
            let answer = tokio::select! {
                biased;
                answer = call => answer.map_err(|error| error::map(error, effect)),
                () = self.clock.sleep_until(until) => {
                    let late = LockError::contention("etcd did not answer before the deadline");
                    Err(Fail::Other(error::with(late, effect)))
                }
            };
            let fail = match answer {
                Ok(answer) => return Ok(answer),
                Err(fail) => fail,
            };
            match &fail {
                Fail::Unsent(_) => self.members.leave(member),
                Fail::Other(error) if error.is_transient() => {
                    self.members.leave(member);
                    if effect == Effect::Writes {
                        return Err(fail);
                    }
                }
                Fail::Other(_) | Fail::NoLease | Fail::LeaseExists => return Err(fail),
            }
            // That nobody leads says more than that a member is silent or away.
            let leaderless = |fail: &Fail| matches!(fail, Fail::Other(error) if error.kind() == ErrorKind::NotLeader);
            if !last.as_ref().is_some_and(leaderless) {
                last = Some(fail);
            }
        }
        let nobody = || Fail::Other(LockError::contention("no member was asked in time"));
        Err(last.unwrap_or_else(nobody))
    }

    /// How long one member is given. A write has all the time there is, since it can be made only
    /// once; a read has its part of it, so that others can be asked too.
    fn until(&self, by: Deadline, now: Moment, effect: Effect, left: usize) -> Moment {
        if effect == Effect::Writes || left <= 1 {
            return by.moment();
        }
        let part = by.remaining(now) / u32::try_from(left).unwrap_or(u32::MAX);
        by.moment().min(now.after(part.max(SHORTEST_TRY)))
    }

    /// Refuses what could not be done in time any more.
    pub(crate) fn begin(&self, by: Deadline) -> Result<(), LockError> {
        if by.is_past(self.clock.now()) {
            return Err(LockError::contention("the deadline passed before the call began"));
        }
        Ok(())
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
