//! A client that writes down what it asks, before it asks, and what it is told.

#![expect(clippy::panic, reason = "only tests call it")]

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use dlock_judge::{
    Recorder,
    ids::{Attempt, Incarnation, Key, Nanos, ProcessId, Session, Token},
    operation::{Answer, Call},
    recorder::Ticket,
};
use serde_json::{Value, json};

use super::Clock;
use crate::client::{Client, NoReply, Reply, is_problem};

/// Beyond every wait that is asked for: an answer that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// One client of one server, for one thread.
#[derive(Debug)]
pub struct Caller<'run> {
    client: Client,
    recorder: &'run Recorder,
    clock: &'run Clock,
    /// How often the server had been started before.
    epoch: &'run AtomicU32,
    process: ProcessId,
}

/// A lock that was had.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The lock.
    pub key: Key,
    /// Its fencing token.
    pub token: Token,
    /// The secret that goes with it.
    pub session_id: String,
    /// Until when the holder may act, by INV-03: the moment it sent the request, plus `valid_ms`.
    pub valid_until: Nanos,
}

/// What became of a call that can be answered with a `T`.
#[derive(Clone, Debug)]
pub enum Told<T> {
    /// The answer.
    Is(T),
    /// It certainly had no effect; the same call may be made again.
    Failed,
    /// It may have had its effect, or may have it yet.
    Unknown,
}

/// How an acquire was answered.
#[derive(Clone, Debug)]
pub enum Acquired {
    /// Granted.
    Granted(Grant),
    /// Somebody else has it.
    Held,
}

/// A call that has been written down and made.
struct Made<'run> {
    ticket: Ticket,
    sent: Nanos,
    received: Nanos,
    reply: Result<Reply, NoReply>,
    recorder: &'run Recorder,
}

impl<'run> Caller<'run> {
    /// A client number `process` of the server at `address`.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        process: u32,
        epoch: &'run AtomicU32,
        recorder: &'run Recorder,
        clock: &'run Clock,
    ) -> Self {
        let client = Client::pooled(address, PATIENCE);
        Self { client, recorder, clock, epoch, process: ProcessId(process) }
    }

    /// What time it is in the history.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Acquires with a private session.
    pub fn acquire(
        &self,
        key: &Key,
        attempt: u128,
        ttl_ms: u64,
        max_wait_ms: u64,
    ) -> Told<Acquired> {
        let call = Call::Acquire {
            key: key.clone(),
            attempt: Attempt(attempt),
            session: None,
            ttl_ns: ttl_ms * 1_000_000,
        };
        let body = json!({
            "name": key.name(),
            "owner": format!("worker-{}", self.process.0),
            "ttl_ms": ttl_ms,
            "max_wait_ms": max_wait_ms,
            "attempt_id": format!("{attempt:032x}"),
        });
        let made = self.make("/v1/locks/acquire", &body, call);
        match &made.reply {
            Ok(Reply { status: 200, body }) => {
                let grant = Grant {
                    key: key.clone(),
                    token: Token(number(body, "fencing_token")),
                    session_id: body["session_id"].as_str().unwrap_or_default().to_owned(),
                    valid_until: made.valid_until(body),
                };
                let answer = Answer::Granted {
                    token: grant.token,
                    session: Session::new(&grant.session_id),
                    valid_until: grant.valid_until,
                };
                made.told(answer, Acquired::Granted(grant))
            }
            Ok(Reply { status: 409, body }) if is_problem(body, "not-granted") => {
                made.told(Answer::NotGranted, Acquired::Held)
            }
            _ => made.not_told(),
        }
    }

    /// Renews; the answer is the new deadline, `None` where the lock is lost.
    pub fn renew(&self, grant: &Grant) -> Told<Option<Nanos>> {
        let call = Call::Renew { key: grant.key.clone(), token: grant.token };
        let made = self.make("/v1/locks/renew", &naming(grant), call);
        match &made.reply {
            Ok(Reply { status: 200, body }) => {
                let (token, valid_until) = (number(body, "fencing_token"), made.valid_until(body));
                assert_eq!(token, grant.token.0, "a renew changes no token: {body}");
                made.told(Answer::Renewed { valid_until }, Some(valid_until))
            }
            Ok(Reply { status: 410, body }) if is_problem(body, "lock-lost") => {
                made.told(Answer::Lost, None)
            }
            _ => made.not_told(),
        }
    }

    /// Releases; the answer is whether this call removed the grant.
    pub fn release(&self, grant: &Grant) -> Told<bool> {
        let call = Call::Release { key: grant.key.clone(), token: grant.token };
        let made = self.make("/v1/locks/release", &naming(grant), call);
        match &made.reply {
            Ok(Reply { status: 200, body: Value::Object(body) })
                if body["released"].is_boolean() =>
            {
                let released = body["released"] == true;
                made.told(Answer::Released(released), released)
            }
            _ => made.not_told(),
        }
    }

    fn make(&self, path: &str, body: &Value, call: Call) -> Made<'run> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let through = Incarnation { server: 0, epoch };
        let sent = self.clock.now();
        let ticket = match self.recorder.begin_through(sent, self.process, through, call) {
            Ok(ticket) => ticket,
            Err(error) => panic!("the call cannot be made: {error}"),
        };
        let reply = self.client.post(path, body);
        let received = self.clock.now();
        Made { ticket, sent, received, reply, recorder: self.recorder }
    }
}

impl Made<'_> {
    fn valid_until(&self, body: &Value) -> Nanos {
        Nanos(self.sent.0 + number(body, "valid_ms") * 1_000_000)
    }

    fn told<T>(self, answer: Answer, it: T) -> Told<T> {
        self.finish(answer);
        Told::Is(it)
    }

    /// No answer to the question, though perhaps one about its effect.
    fn not_told<T>(self) -> Told<T> {
        let applied = match &self.reply {
            Err(NoReply::Refused) => "no",
            Err(NoReply::Unknown(_)) => "unknown",
            Ok(Reply { status: 503, body }) if body["retryable"] == true => {
                body["applied"].as_str().unwrap_or_default()
            }
            Ok(_) => "",
        };
        match applied {
            "no" => {
                self.finish(Answer::Failed);
                Told::Failed
            }
            "unknown" => {
                self.finish(Answer::Unknown);
                Told::Unknown
            }
            _ => panic!("no answer that was to be expected: {:?}", self.reply),
        }
    }

    fn finish(self, answer: Answer) {
        if let Err(error) = self.recorder.finish(self.ticket, self.received, answer) {
            panic!("the answer cannot be written down: {error}");
        }
    }
}

fn naming(grant: &Grant) -> Value {
    json!({
        "name": grant.key.name(),
        "fencing_token": grant.token.0,
        "session_id": grant.session_id,
    })
}

fn number(body: &Value, field: &str) -> u64 {
    match body[field].as_u64() {
        Some(number) => number,
        None => panic!("{field} is no number in {body}"),
    }
}
