//! One watch per store, and what it has seen (traps 17 to 22).
//!
//! A watch that starts in the past of a busy cluster is served late, and one for every waiter is as
//! many streams. So there is one, on everything below the prefix, deletes only; it is always up to
//! date, and remembers the latest deletes, so that "was this key deleted after that revision?" has
//! an answer also for whoever comes after the delete.
//!
//! The watch lives as long as somebody waits, and a while longer: starting one costs more than
//! keeping it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use dlock_domain::Moment;
use etcd_client::{
    EventType, GetOptions, WatchFilterType, WatchOptions, WatchResponse, WatchStream,
};
use tokio::sync::Notify;

use crate::{
    config::EtcdConfig,
    keys::Keys,
    members::Line,
    wire::{LONGEST_ANSWER, Wire},
};

/// A key in etcd.
type Key = Arc<[u8]>;

/// How long a watch may take to come up, and how long it may be silent after it was asked for a
/// sign of life.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait before a broken watch is begun again, doubled up to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// What the watch has to say of a key since some revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It was deleted.
    Deleted,
    /// It was not.
    NothingSince,
    /// The watch began after that revision: somebody has to look once.
    BeganLater,
    /// There is no watch at the moment.
    NoWatch,
    /// Since the wait began something was lost for good: etcd has compacted what was not seen yet.
    Broken,
}

/// Where those who wait and the watch meet.
pub(crate) struct Hub {
    state: Mutex<State>,
    wire: Arc<Wire>,
    keys: Keys,
    linger: Duration,
    ring: usize,
}

#[derive(Default)]
struct State {
    waiting: HashMap<Key, Waiting>,
    seen: Seen,
    /// Whether the task that keeps the watch is there.
    kept: bool,
    /// Whether the watch is up.
    up: bool,
    /// How often something was lost for good.
    losses: u64,
    /// Since when nobody waits.
    idle_since: Option<Moment>,
}

/// Those who wait for one key.
#[derive(Default)]
struct Waiting {
    count: u32,
    news: Arc<Notify>,
}

/// The latest deletes.
#[derive(Default)]
struct Seen {
    /// Everything after this revision is known...
    since: i64,
    /// ...up to this one.
    up_to: i64,
    by_age: VecDeque<(i64, Key)>,
    latest: HashMap<Key, i64>,
}

impl Seen {
    fn restart(&mut self, at: i64) {
        *self = Self { since: at, up_to: at, ..Self::default() };
    }

    fn note(&mut self, key: Key, revision: i64, most: usize) {
        // Some versions deliver what is older than asked for. What is of the latest revision may
        // be the rest of it, or come twice, which does no harm.
        if revision < self.up_to {
            return;
        }
        self.latest.insert(Arc::clone(&key), revision);
        self.by_age.push_back((revision, key));
        while self.by_age.len() > most {
            let Some((revision, key)) = self.by_age.pop_front() else { break };
            self.since = self.since.max(revision);
            if self.latest.get(&key) == Some(&revision) {
                self.latest.remove(&key);
            }
        }
    }

    fn verdict(&self, key: &[u8], revision: i64) -> Verdict {
        match self.latest.get(key) {
            Some(deleted) if *deleted > revision => Verdict::Deleted,
            _ if revision < self.since => Verdict::BeganLater,
            _ => Verdict::NothingSince,
        }
    }
}

impl Hub {
    pub(crate) fn new(wire: Arc<Wire>, keys: Keys, config: &EtcdConfig) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            wire,
            keys,
            linger: config.watch_linger,
            ring: config.watch_ring.max(1),
        })
    }

    /// How many wait for a key here.
    pub(crate) fn count(&self, key: &[u8]) -> u32 {
        self.lock().waiting.get(key).map_or(0, |waiting| waiting.count)
    }

    /// Begins to wait for a key; there is a watch from now on.
    pub(crate) fn join(self: &Arc<Self>, key: &[u8]) -> Waiter {
        let key: Key = key.into();
        let mut state = self.lock();
        let waiting = state.waiting.entry(Arc::clone(&key)).or_default();
        waiting.count += 1;
        let news = Arc::clone(&waiting.news);
        state.idle_since = None;
        let losses = state.losses;
        if !state.kept {
            state.kept = true;
            tokio::spawn(keep_watching(Arc::downgrade(self)));
        }
        drop(state);
        Waiter { hub: Arc::clone(self), key, news, losses }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody to judge anew.
    fn tell_all(state: &State) {
        for waiting in state.waiting.values() {
            waiting.news.notify_waiters();
        }
    }
}

/// One who waits: counted while it exists, gone when it is dropped (INV-10).
pub(crate) struct Waiter {
    hub: Arc<Hub>,
    key: Key,
    news: Arc<Notify>,
    losses: u64,
}

impl Waiter {
    pub(crate) fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.news.notified()
    }

    pub(crate) fn verdict(&self, revision: i64) -> Verdict {
        let state = self.hub.lock();
        if state.losses != self.losses {
            return Verdict::Broken;
        }
        match state.seen.verdict(&self.key, revision) {
            Verdict::Deleted => Verdict::Deleted,
            _ if !state.up => Verdict::NoWatch,
            verdict => verdict,
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let now = self.hub.wire.clock.now();
        let mut state = self.hub.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.key) {
            waiting.count -= 1;
            if waiting.count == 0 {
                state.waiting.remove(&self.key);
            }
        }
        if state.waiting.is_empty() {
            state.idle_since = Some(now);
        }
    }
}

/// Why a watch ended.
enum End {
    /// Nobody has waited for a while.
    Idle,
    /// The stream broke: go on from what was seen.
    Broken,
    /// Everything up to this revision is compacted, and part of it was not seen.
    Compacted,
}

/// Keeps the watch as long as somebody waits, and a while longer.
async fn keep_watching(hub: Weak<Hub>) {
    let mut pause = RETRY.0;
    loop {
        let Some(strong) = hub.upgrade() else { return };
        let came_up = match strong.watch_once().await {
            (End::Idle, _) => return,
            (End::Broken, came_up) => came_up,
            (End::Compacted, came_up) => {
                let mut state = strong.lock();
                state.losses += 1;
                state.seen = Seen::default();
                Hub::tell_all(&state);
                came_up
            }
        };
        pause = if came_up { RETRY.0 } else { (pause * 2).min(RETRY.1) };
        let (clock, again_at) = {
            let mut state = strong.lock();
            state.up = false;
            Hub::tell_all(&state);
            (Arc::clone(&strong.wire.clock), strong.wire.clock.now().after(pause))
        };
        if strong.ends_idle() {
            return;
        }
        drop(strong);
        clock.sleep_until(again_at).await;
    }
}

impl Hub {
    /// Ends the keeping if nobody has waited for long enough.
    fn ends_idle(&self) -> bool {
        let now = self.wire.clock.now();
        let mut state = self.lock();
        let idle = state.waiting.is_empty()
            && state.idle_since.is_none_or(|since| now.since(since) >= self.linger);
        if idle {
            (state.kept, state.up) = (false, false);
            state.seen = Seen::default();
        }
        idle
    }

    /// One stream, to its end; and whether it came up at all.
    async fn watch_once(&self) -> (End, bool) {
        // From the last that was seen, since only part of that revision may have come; the first
        // time from now on.
        let resume = Some(self.lock().seen.up_to).filter(|revision| *revision > 0);
        let mut options = WatchOptions::new()
            .with_prefix()
            .with_filters([WatchFilterType::NoPut])
            // One revision may delete more than a message holds (trap 18).
            .with_fragment();
        if let Some(seen) = resume {
            options = options.with_start_revision(seen);
        }
        let member = self.wire.members.current();
        let Some(Ok(mut stream)) = self.in_time(self.open(member, options)).await else {
            self.wire.members.leave(member);
            return (End::Broken, false);
        };
        let mut came_up = false;
        loop {
            let next = match self.in_time(stream.message()).await {
                Some(next) => next,
                // Silence: ask for a sign of life, and give up the next time.
                None if !came_up => {
                    self.wire.members.leave(member);
                    return (End::Broken, came_up);
                }
                None if self.ends_idle() => return (End::Idle, came_up),
                None => {
                    if self.sign_of_life(&mut stream).await {
                        continue;
                    }
                    self.wire.members.leave(member);
                    return (End::Broken, came_up);
                }
            };
            let Ok(Some(response)) = next else {
                self.wire.members.leave(member);
                return (End::Broken, came_up);
            };
            if response.compact_revision() > 0 {
                return (End::Compacted, came_up);
            }
            if response.canceled() {
                tracing::warn!(reason = response.cancel_reason(), "etcd cancelled the watch");
                return (End::Broken, came_up);
            }
            if response.created() {
                // A member that lags behind what was seen, or a cluster that has gone back in its
                // history: what the watch remembers is of no use there.
                if resume.is_some_and(|seen| revision_of(&response) < seen) {
                    return (End::Compacted, came_up);
                }
                came_up = true;
                self.came_up(&response, resume);
                continue;
            }
            self.take(&response);
            if self.ends_idle() {
                return (End::Idle, came_up);
            }
        }
    }

    /// Opens a stream at a member. A call goes first: where a user's token has expired it is the
    /// refused call that brings another, and a watch is not refused but cancelled.
    async fn open(
        &self,
        member: usize,
        options: WatchOptions,
    ) -> Result<WatchStream, etcd_client::Error> {
        let client = self.wire.members.client(member, Line::Beats).await?;
        let one = GetOptions::new().with_serializable().with_keys_only();
        client.kv_client().get(self.keys.all(), Some(one)).await?;
        let mut watches = client.watch_client().max_decoding_message_size(LONGEST_ANSWER);
        watches.watch(self.keys.all(), Some(options)).await
    }

    /// Asks an idle stream for its progress; `false` if it does not answer.
    async fn sign_of_life(&self, stream: &mut WatchStream) -> bool {
        if stream.request_progress().await.is_err() {
            return false;
        }
        match self.in_time(stream.message()).await {
            Some(Ok(Some(response))) if !response.canceled() => {
                self.take(&response);
                true
            }
            _ => false,
        }
    }

    fn came_up(&self, response: &WatchResponse, resumed: Option<i64>) {
        let revision = revision_of(response);
        let mut state = self.lock();
        if resumed.is_none() {
            // "From now on" is after the revision at which the watch was made.
            state.seen.restart(revision);
        }
        state.up = true;
        Self::tell_all(&state);
    }

    /// Takes in what was deleted.
    fn take(&self, response: &WatchResponse) {
        let mut state = self.lock();
        let mut last = 0;
        for event in response.events() {
            let Some(kv) = event.kv().filter(|_| event.event_type() == EventType::Delete) else {
                continue;
            };
            last = last.max(kv.mod_revision());
            if !self.keys.is_lock(kv.key()) {
                continue;
            }
            let key: Key = kv.key().into();
            if let Some(waiting) = state.waiting.get(&key) {
                waiting.news.notify_waiters();
            }
            state.seen.note(key, kv.mod_revision(), self.ring);
        }
        state.seen.up_to = state.seen.up_to.max(last);
    }

    /// Bounds what is awaited of the stream; `None`: not in time.
    async fn in_time<T>(&self, awaited: impl Future<Output = T>) -> Option<T> {
        let clock = &self.wire.clock;
        let until = clock.now().after(PATIENCE);
        // Dropping `message` between messages loses none: the stream keeps what it has.
        tokio::select! {
            biased;
            done = awaited => Some(done),
            () = clock.sleep_until(until) => None,
        }
    }
}

fn revision_of(response: &WatchResponse) -> i64 {
    response.header().map_or(0, etcd_client::ResponseHeader::revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        name.as_bytes().into()
    }

    #[test]
    fn trap_17_a_delete_is_known_to_whoever_comes_after_it() {
        let mut seen = Seen::default();
        seen.restart(100);
        seen.note(key("a"), 105, 10);
        assert_eq!(seen.verdict(b"a", 104), Verdict::Deleted);
        assert_eq!(seen.verdict(b"a", 105), Verdict::NothingSince);
        assert_eq!(seen.verdict(b"b", 100), Verdict::NothingSince);
        assert_eq!(seen.verdict(b"b", 99), Verdict::BeganLater);
        assert_eq!(seen.verdict(b"a", 99), Verdict::Deleted);
    }

    #[test]
    fn inv10_the_oldest_deletes_give_way_and_it_is_known_that_they_did() {
        let mut seen = Seen::default();
        seen.restart(0);
        for revision in 1..=1_000 {
            seen.up_to = revision - 1;
            seen.note(key(&format!("k{}", revision % 7)), revision, 5);
        }
        assert_eq!((seen.by_age.len(), seen.latest.len()), (5, 5));
        assert_eq!(seen.since, 995);
        assert_eq!(seen.verdict(b"other", 994), Verdict::BeganLater);
        assert_eq!(seen.verdict(b"other", 995), Verdict::NothingSince);
    }
}
