//! One case: steps, lost replies, time.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dlock_domain::{Applied, Deadline, ErrorKind, Moment};
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_ports::Clock as _;

use crate::{
    call::{Answer, Call},
    client::Client,
    harness::{Expiry, Harness, Subject},
    ledger::{Ledger, Seen, Verdict},
    op::{Op, Reply, Step},
    twins::Twins,
};

/// Who judges a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judges {
    /// The ledger alone: for the reference itself.
    Ledger,
    /// The comparison with the reference alone.
    Reference,
    /// Both.
    Both,
}

/// The first wrong answer of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// How many steps had been begun.
    pub begun: usize,
    /// What is wrong, in words.
    pub why: String,
}

/// The budget of a call.
const BUDGET: Duration = Duration::from_secs(30);
/// A call that has no answer by then hangs. In real time, and nothing is measured by it.
const HANG: Duration = Duration::from_secs(60);

/// Runs a sequence against a fresh store, and says what was seen of it.
///
/// # Errors
/// The first step whose answer is wrong, and why.
///
/// # Cancellation
/// What the harness made may stay behind.
pub async fn run_case(
    harness: &dyn Harness,
    judges: Judges,
    steps: &[Step],
) -> Result<Seen, Wrong> {
    let clock = ManualClock::new();
    let fresh = harness.fresh(&clock).await.map_err(|why| Wrong { begun: 0, why })?;
    let Subject { backend, expiry, drops_in_order, guard } = fresh;
    let exact = matches!(expiry, Expiry::Exact);
    let reference = MemoryStore::new(Arc::new(clock.clone()), Arc::new(SeededEntropy::new(1)));
    let time = Time::new(clock, expiry);
    let mut case = Case {
        time,
        drops_in_order,
        judges,
        subject: Client::new(backend),
        reference: Client::new(reference.backend()),
        ledger: Ledger::new(exact),
        twins: Twins::new(exact),
    };
    let mut verdict = Ok(());
    let audit = Step { op: Op::Audit, reply: Reply::Arrives };
    for (number, step) in steps.iter().chain([&audit]).enumerate() {
        verdict = case
            .step(step)
            .await
            .map_err(|why| Wrong { begun: number + 1, why: format!("{:?}: {why}", step.op) });
        if verdict.is_err() {
            break;
        }
    }
    let seen = case.ledger.seen().clone();
    drop(case);
    guard.clean_up().await;
    verdict.map(|()| seen)
}

struct Case {
    time: Time,
    drops_in_order: bool,
    judges: Judges,
    subject: Client,
    reference: Client,
    ledger: Ledger,
    twins: Twins,
}

impl Case {
    async fn step(&mut self, step: &Step) -> Verdict {
        if let Op::Advance { millis } = step.op {
            self.time.pass(Duration::from_millis(millis)).await;
            return Ok(());
        }
        let repeatable = step.reply == Reply::Dropped;
        let resolve = |client: &mut Client| {
            client.resolve(&step.op, repeatable).map_err(|error| error.to_string())
        };
        let calls = resolve(&mut self.subject)?;
        let twins = resolve(&mut self.reference)?;
        for (call, twin) in calls.iter().zip(&twins) {
            if !self.subject.can(call) {
                continue;
            }
            match step.reply {
                Reply::Arrives => self.answered(call, twin, true).await?,
                Reply::Lost => {
                    self.answered(call, twin, false).await?;
                    self.answered(call, twin, true).await.map_err(|why| format!("again: {why}"))?;
                }
                Reply::Dropped if self.drops_in_order => self.dropped(call, twin).await?,
                Reply::Dropped => self.answered(call, twin, true).await?,
                Reply::TooLate => self.too_late(call).await?,
            }
        }
        Ok(())
    }

    /// Both stores answer; whether the caller hears it is another matter.
    async fn answered(&mut self, call: &Call, twin: &Call, heard: bool) -> Verdict {
        self.time.settle(&self.ledger).await;
        let (theirs, ours) = (self.ask_reference(twin).await, self.ask(call).await?);
        if self.judges != Judges::Reference {
            self.ledger.check(call, &ours, self.time.now())?;
        }
        if self.judges != Judges::Ledger {
            self.twins.same(twin, &theirs, &ours)?;
        }
        if heard {
            self.subject.learn(call, &ours);
            self.reference.learn(twin, &theirs);
        }
        Ok(())
    }

    /// The call is sent and given up, then made again. Either it was done the first time or not;
    /// nobody knows, so the second answer may be either.
    async fn dropped(&mut self, call: &Call, twin: &Call) -> Verdict {
        self.time.settle(&self.ledger).await;
        let by = self.time.deadline(BUDGET);
        {
            let mut sent = pin!(call.perform(&self.subject.backend, by));
            poll_fn(|context| {
                let _ = sent.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        }
        let first = self.ask_reference(twin).await;
        let (second, ours) = (self.ask_reference(twin).await, self.ask(call).await?);
        let now = self.time.now();
        if self.judges != Judges::Reference {
            let mut undone = self.ledger.clone();
            let mut done = self.ledger.clone();
            done.suppose(call, now);
            self.ledger = match done.check(call, &ours, now) {
                Ok(()) => done,
                Err(why) => undone.check(call, &ours, now).map(|()| undone).map_err(|other| {
                    format!("after a dropped call: {why}, if it was done; {other}, if not")
                })?,
            };
        }
        self.ledger.count("dropped");
        let mut theirs = second;
        if self.judges != Judges::Ledger {
            let mut twins = self.twins.clone();
            if let Err(why) = twins.same(twin, &theirs, &ours) {
                twins = self.twins.clone();
                theirs = first;
                twins
                    .same(twin, &theirs, &ours)
                    .map_err(|_| format!("after a dropped call: {why}"))?;
            }
            self.twins = twins;
        }
        self.subject.learn(call, &ours);
        self.reference.learn(twin, &theirs);
        Ok(())
    }

    /// A call made at its deadline is refused, and the next answers show that it did nothing. The
    /// reference is not even asked.
    async fn too_late(&mut self, call: &Call) -> Verdict {
        self.time.settle(&self.ledger).await;
        let by = self.time.deadline(Duration::ZERO);
        match in_time(call.perform(&self.subject.backend, by)).await? {
            Answer::Failed(ErrorKind::Contention, Applied::No) => {
                self.ledger.count("too late");
                Ok(())
            }
            answer => Err(format!("past its deadline it answered {answer:?}")),
        }
    }

    async fn ask(&self, call: &Call) -> Result<Answer, String> {
        in_time(call.perform(&self.subject.backend, self.time.deadline(BUDGET))).await
    }

    async fn ask_reference(&self, call: &Call) -> Answer {
        call.perform(&self.reference.backend, Deadline::at(Moment::NEVER)).await
    }
}

async fn in_time(call: impl Future<Output = Answer>) -> Result<Answer, String> {
    tokio::time::timeout(HANG, call).await.map_err(|_| format!("no answer within {HANG:?}"))
}

/// The case's clock, beside the store's own time if it has one.
struct Time {
    clock: ManualClock,
    start: Moment,
    expiry: Expiry,
    own_start: Moment,
}

impl Time {
    fn new(clock: ManualClock, expiry: Expiry) -> Self {
        let own_start = match &expiry {
            Expiry::Exact => Moment::from_nanos(0),
            Expiry::Window { time, .. } => time.now(),
        };
        Self { start: clock.now(), clock, expiry, own_start }
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn deadline(&self, budget: Duration) -> Deadline {
        match &self.expiry {
            Expiry::Exact => Deadline::at(self.now().after(budget)),
            Expiry::Window { time, .. } => time.deadline(budget),
        }
    }

    async fn pass(&self, duration: Duration) {
        match &self.expiry {
            Expiry::Exact => self.clock.advance(duration),
            Expiry::Window { time, .. } => time.pass(duration).await,
        }
    }

    /// Brings the case's clock up to the store's time, and lets every moment pass at which a lease
    /// may or may not have ended.
    async fn settle(&self, ledger: &Ledger) {
        let Expiry::Window { early, late, time } = &self.expiry else { return };
        loop {
            let elapsed = time.now().since(self.own_start);
            self.clock.advance(self.start.after(elapsed).since(self.clock.now()));
            let now = self.clock.now();
            let uncertain = |end: &Moment| now.after(*early) >= *end && now <= end.after(*late);
            let Some(end) = ledger.lease_ends().filter(uncertain).max() else { return };
            time.pass(end.after(*late).since(now) + Duration::from_millis(1)).await;
        }
    }
}
