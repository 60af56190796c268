//! A correct lock, simulated, with clients that crash, pause, lose replies, trust
//! stale grants and ask twice.
//!
//! Time is a queue of events: a client steps, its call takes effect in the store
//! at some later moment (never, or very late, if its outcome is unknown), and its
//! reply arrives later still. The store is right by construction: it keeps one
//! live grant per key, draws growing tokens, and ends a session only after the
//! last deadline it gave.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use dlock_judge::ids::{Attempt, Incarnation, Key, Nanos, ProcessId, Session, Token};
use dlock_judge::operation::{Answer, Call};
use dlock_judge::recorder::Ticket;
use dlock_judge::{History, Recorder};

use crate::chance::Chance;

const TTL: u64 = 1_000;
const MARGIN: u64 = 50;
const LATENCY: u64 = 60;

/// How much of what a simulation has.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    clients: usize,
    keys: usize,
    operations: usize,
    operators: bool,
}

impl Setting {
    pub(crate) fn small() -> Self {
        Self { clients: 6, keys: 2, operations: 500, operators: true }
    }

    pub(crate) fn large() -> Self {
        Self { clients: 64, keys: 8, operations: 150_000, operators: true }
    }

    /// Nobody revokes or raises floors.
    pub(crate) fn without_operators(self) -> Self {
        Self { operators: false, ..self }
    }
}

/// What a client believes to hold; it may be wrong.
#[derive(Clone)]
struct Belief {
    key: Key,
    attempt: Attempt,
    token: Token,
    session: Session,
}

#[derive(Default)]
struct Client {
    epoch: u32,
    /// A session it means to hold several locks under.
    session: Option<Session>,
    holds: Vec<Belief>,
    /// An acquire of unknown outcome.
    pending: Option<(Key, Attempt, Option<Session>)>,
}

struct Live {
    token: Token,
    attempt: Attempt,
    session: Session,
}

#[derive(Default)]
struct Lock {
    live: Option<Live>,
}

struct Lease {
    /// The safe deadline of its holder, by the request that last set it.
    safe: u64,
    /// When the store ends it: later.
    expires: u64,
}

#[derive(Default)]
struct Store {
    locks: HashMap<Key, Lock>,
    leases: HashMap<Session, Lease>,
    settled: HashSet<Attempt>,
    last_token: u64,
}

enum Event {
    Step(usize),
    Apply(Pending),
    Reply(Pending, Answer),
}

struct Pending {
    client: usize,
    ticket: Option<Ticket>,
    invoked: u64,
    call: Call,
    /// The client has given up on it.
    orphan: bool,
}

struct Simulation {
    setting: Setting,
    chance: Chance,
    now: u64,
    recorder: Recorder,
    begun: usize,
    names: u128,
    store: Store,
    clients: Vec<Client>,
    keys: Vec<Key>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    events: HashMap<u64, Event>,
    next_event: u64,
}

/// The history of one simulated run.
pub(crate) fn history(seed: u64, setting: Setting) -> History {
    let mut simulation = Simulation {
        setting,
        chance: Chance::new(seed),
        now: 1_000,
        recorder: Recorder::new(setting.operations),
        begun: 0,
        names: 0,
        store: Store::default(),
        clients: (0..setting.clients).map(|_| Client::default()).collect(),
        keys: (0..setting.keys).map(|n| Key::named(&format!("key-{n}"))).collect(),
        queue: BinaryHeap::new(),
        events: HashMap::new(),
        next_event: 0,
    };
    for client in 0..setting.clients {
        simulation.after(client as u64, Event::Step(client));
    }
    while let Some(Reverse((at, number))) = simulation.queue.pop() {
        simulation.now = at;
        match simulation.events.remove(&number) {
            Some(Event::Step(client)) => simulation.step(client),
            Some(Event::Apply(pending)) => simulation.apply(pending),
            Some(Event::Reply(pending, answer)) => simulation.reply(pending, answer),
            None => {}
        }
    }
    simulation.recorder.into_history()
}

impl Simulation {
    fn after(&mut self, delay: u64, event: Event) {
        self.queue.push(Reverse((self.now + delay, self.next_event)));
        self.events.insert(self.next_event, event);
        self.next_event += 1;
    }

    fn soon(&mut self) -> u64 {
        self.chance.between(1, LATENCY)
    }

    fn name(&mut self) -> u128 {
        self.names += 1;
        self.names
    }

    fn any_key(&mut self) -> Key {
        let place = self.chance.place(self.keys.len());
        self.keys[place].clone()
    }

    /// A client does the next thing; none does once enough has been done.
    fn step(&mut self, client: usize) {
        if self.begun == self.setting.operations {
            return;
        }
        if self.chance.percent(4) {
            // A crash: all belief is gone, the store knows nothing of it.
            let epoch = self.clients[client].epoch + 1;
            self.clients[client] = Client { epoch, ..Client::default() };
        }
        if self.chance.percent(6) {
            // A pause, long enough to outlive a lease.
            let pause = self.chance.between(TTL / 2, 3 * TTL);
            self.after(pause, Event::Step(client));
            return;
        }
        let call = self.choose(client);
        let process = ProcessId(u32::try_from(client).unwrap_or(u32::MAX));
        let through = Incarnation { server: process.0 % 2, epoch: self.clients[client].epoch };
        let begun = self.recorder.begin_through(Nanos(self.now), process, through, call.clone());
        let Ok(ticket) = begun else { return };
        self.begun += 1;
        let invoked = self.now;
        let mut pending = Pending { client, ticket: Some(ticket), invoked, call, orphan: false };
        let latency = self.soon();
        if self.chance.percent(15) {
            self.lose_reply(&mut pending);
            // It may never happen, happen as usual, or very much later.
            match self.chance.below(3) {
                0 => {}
                1 => self.after(latency, Event::Apply(pending)),
                _ => {
                    let late = self.chance.between(TTL, 20 * TTL);
                    self.after(late, Event::Apply(pending));
                }
            }
        } else if self.chance.percent(3) {
            self.after(latency, Event::Reply(pending, Answer::Failed));
        } else {
            self.after(latency, Event::Apply(pending));
        }
    }

    /// The client gives up waiting: with an answer that says unknown, or with none.
    fn lose_reply(&mut self, pending: &mut Pending) {
        pending.orphan = true;
        if let Call::Acquire { key, attempt, session, .. } = &pending.call {
            self.clients[pending.client].pending = Some((key.clone(), *attempt, session.clone()));
        }
        let patience = self.chance.between(LATENCY, 4 * LATENCY);
        if let Some(ticket) = pending.ticket.take().filter(|_| self.chance.percent(50)) {
            let at = Nanos(pending.invoked + patience);
            let _ = self.recorder.finish(ticket, at, Answer::Unknown);
        }
        self.after(patience, Event::Step(pending.client));
    }

    fn choose(&mut self, client: usize) -> Call {
        if self.setting.operators && self.chance.percent(3) {
            let key = self.any_key();
            let expected = self.chance.percent(40).then_some(Token(self.store.last_token));
            return Call::Revoke { key, expected };
        }
        if self.setting.operators && self.chance.percent(1) {
            let at_least = Token(self.store.last_token.saturating_sub(3) + self.chance.below(6));
            return Call::RaiseFloor { namespace: "default".into(), at_least };
        }
        if self.chance.percent(4) {
            return Call::Inspect { key: self.any_key() };
        }
        if let Some((key, attempt, session)) = self.clients[client].pending.take() {
            match self.chance.below(4) {
                0 | 1 => return Call::Acquire { key, attempt, session, ttl_ns: TTL },
                2 => return Call::Forget { key, attempt },
                _ => {}
            }
        }
        let holds = self.clients[client].holds.clone();
        if let Some(belief) = holds.last().filter(|_| !self.chance.percent(15)) {
            return self.tend(client, belief, &holds);
        }
        let session = self.clients[client].session.clone().filter(|_| self.chance.percent(50));
        let attempt = Attempt(self.name());
        Call::Acquire { key: self.any_key(), attempt, session, ttl_ns: TTL }
    }

    /// Does something with what it believes to hold.
    fn tend(&mut self, client: usize, belief: &Belief, holds: &[Belief]) -> Call {
        let Belief { key, attempt, token, session } = belief.clone();
        match self.chance.below(100) {
            0..=4 => Call::Acquire { key, attempt, session: Some(session), ttl_ns: TTL },
            5..=34 => Call::Renew { key, token },
            35..=64 => {
                let of_it = holds.iter().filter(|belief| belief.session == session);
                let held = of_it.map(|belief| (belief.key.clone(), belief.token)).collect();
                Call::KeepAlive { session, held }
            }
            65..=69 => {
                self.forget_session(client, &session);
                Call::CloseSession { session }
            }
            _ => {
                // Now and then a client goes on with what it meant to release.
                if self.chance.percent(90) {
                    self.clients[client].holds.pop();
                }
                Call::Release { key, token }
            }
        }
    }

    fn forget_session(&mut self, client: usize, session: &Session) {
        let client = &mut self.clients[client];
        client.holds.retain(|belief| belief.session != *session);
        client.session = client.session.take().filter(|known| known != session);
    }

    fn apply(&mut self, pending: Pending) {
        let answer = self.store.answer(&pending, self.now, &mut self.chance);
        if !pending.orphan {
            let latency = if self.chance.percent(3) { 2 * TTL } else { self.soon() };
            self.after(latency, Event::Reply(pending, answer));
        }
    }

    fn reply(&mut self, pending: Pending, answer: Answer) {
        let Pending { client, ticket, call, .. } = pending;
        self.learn(client, &call, &answer);
        if let Some(ticket) = ticket {
            let _ = self.recorder.finish(ticket, Nanos(self.now), answer);
        }
        let rest = self.soon();
        self.after(rest, Event::Step(client));
    }

    fn learn(&mut self, client: usize, call: &Call, answer: &Answer) {
        let lose = self.chance.percent(80);
        let client = &mut self.clients[client];
        match (call, answer) {
            (Call::Acquire { key, attempt, .. }, Answer::Granted { token, session, .. }) => {
                client.session.get_or_insert_with(|| session.clone());
                client.holds.retain(|belief| belief.token != *token);
                let (key, token, session) = (key.clone(), *token, session.clone());
                client.holds.push(Belief { key, attempt: *attempt, token, session });
            }
            (Call::Acquire { session: Some(_), .. }, Answer::Lost) => client.session = None,
            (Call::Renew { token, .. }, Answer::Lost) if lose => {
                client.holds.retain(|belief| belief.token != *token);
            }
            (Call::KeepAlive { session, .. }, Answer::Lost) if lose => {
                client.holds.retain(|belief| belief.session != *session);
                client.session = None;
            }
            (_, Answer::Kept { lost, .. }) if lose => {
                client.holds.retain(|belief| !lost.contains(&(belief.key.clone(), belief.token)));
            }
            _ => {}
        }
    }
}

impl Store {
    fn draw(&mut self, chance: &mut Chance) -> Token {
        self.last_token += chance.between(1, 4);
        Token(self.last_token)
    }

    /// Sets a session's lease for a request invoked at `invoked`; expiry may be late.
    fn keep(&mut self, session: &Session, invoked: u64, now: u64, chance: &mut Chance) -> Nanos {
        let late = if chance.percent(30) { chance.below(TTL) } else { 0 };
        let safe = invoked + TTL - MARGIN;
        let lease = self.leases.entry(session.clone()).or_insert(Lease { safe, expires: 0 });
        lease.safe = lease.safe.max(safe);
        lease.expires = lease.expires.max(now + TTL + late);
        Nanos(safe)
    }

    fn expire(&mut self, now: u64) {
        self.leases.retain(|_, lease| lease.expires > now);
        let leases = &self.leases;
        for lock in self.locks.values_mut() {
            lock.live = lock.live.take().filter(|live| leases.contains_key(&live.session));
        }
    }

    fn live(&self, key: &Key) -> Option<&Live> {
        self.locks.get(key).and_then(|lock| lock.live.as_ref())
    }

    fn end(&mut self, key: &Key, which: impl Fn(&Live) -> bool) -> Option<Token> {
        let lock = self.locks.get_mut(key)?;
        lock.live.take_if(|live| which(live)).map(|live| live.token)
    }

    fn answer(&mut self, pending: &Pending, now: u64, chance: &mut Chance) -> Answer {
        self.expire(now);
        match &pending.call {
            Call::Acquire { key, attempt, session, .. } => {
                self.acquire(key, *attempt, session.as_ref(), (pending.invoked, now), chance)
            }
            Call::Renew { key, token } => {
                let live = self.live(key).filter(|live| live.token == *token);
                let Some(session) = live.map(|live| live.session.clone()) else {
                    return Answer::Lost;
                };
                let valid_until = self.keep(&session, pending.invoked, now, chance);
                Answer::Renewed { valid_until }
            }
            Call::KeepAlive { session, held } => {
                if !self.leases.contains_key(session) {
                    return Answer::Lost;
                }
                let valid_until = self.keep(session, pending.invoked, now, chance);
                let there = |key, token| self.live(key).is_some_and(|live| live.token == token);
                let lost = held.iter().filter(|(key, token)| !there(key, *token));
                Answer::Kept { valid_until, lost: lost.cloned().collect() }
            }
            Call::Release { key, token } => {
                Answer::Released(self.end(key, |live| live.token == *token).is_some())
            }
            Call::Forget { key, attempt } => {
                self.settled.insert(*attempt);
                Answer::Released(self.end(key, |live| live.attempt == *attempt).is_some())
            }
            Call::Revoke { key, expected } => self.revoke(key, *expected, chance),
            Call::RaiseFloor { at_least, .. } => {
                let mut grants_ended = 0;
                for lock in self.locks.values_mut() {
                    grants_ended += u64::from(lock.live.take().is_some());
                }
                // Nothing says that the floor must exceed what it ended.
                self.last_token = self.last_token.max(at_least.0);
                Answer::FloorRaised { floor: *at_least, grants_ended }
            }
            Call::CloseSession { session } => {
                let there = self.leases.remove(session).is_some();
                self.expire(now);
                Answer::Closed(there)
            }
            Call::Inspect { key } => Answer::Info(self.live(key).map(|live| live.token)),
        }
    }

    fn acquire(
        &mut self,
        key: &Key,
        attempt: Attempt,
        session: Option<&Session>,
        (invoked, now): (u64, u64),
        chance: &mut Chance,
    ) -> Answer {
        if let Some(live) = self.live(key) {
            if live.attempt != attempt {
                return Answer::NotGranted;
            }
            let (token, session) = (live.token, live.session.clone());
            let valid_until = Nanos(self.leases[&session].safe);
            return Answer::Granted { token, session, valid_until };
        }
        if self.settled.contains(&attempt) {
            return Answer::NotGranted;
        }
        let session = match session {
            Some(shared) if !self.leases.contains_key(shared) => return Answer::Lost,
            Some(shared) => shared.clone(),
            None => {
                // One of its own; a repeat after its end gets a new one.
                let own = Session::new(&format!("of-{}-{now}", attempt.0));
                self.keep(&own, invoked, now, chance);
                own
            }
        };
        let token = self.draw(chance);
        let valid_until = Nanos(self.leases[&session].safe);
        let live = Live { token, attempt, session: session.clone() };
        self.locks.entry(key.clone()).or_default().live = Some(live);
        Answer::Granted { token, session, valid_until }
    }

    fn revoke(&mut self, key: &Key, expected: Option<Token>, chance: &mut Chance) -> Answer {
        let current = self.live(key).map(|live| live.token);
        if expected.is_some() && current != expected {
            return Answer::Mismatch { current };
        }
        let previous = self.end(key, |_| true);
        let floor = self.draw(chance);
        match previous {
            Some(previous) => Answer::Revoked { previous, floor },
            None => Answer::Free { floor },
        }
    }
}
