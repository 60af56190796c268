//! A thread that owns a connection and runs operations in groups, one transaction a group.
//!
//! Callers hand in operations and await their answers. The thread takes what has queued up, runs
//! it all in one transaction, commits, and only then answers: one sync of the disk serves many
//! callers (trap 32), an idle call pays for itself alone. If the database fails inside a group of
//! several, the group is rolled back and its members are run one by one, so that one cannot spoil
//! the others' day.
//!
//! An operation that its caller has given up (deadline or drop) before its turn is never run: the
//! caller learns `applied: No`. Afterwards it is `Unknown`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use dlock_domain::{Deadline, ErrorKind, LockError, Moment, Result};
use dlock_ports::Clock;
use tokio::sync::oneshot;

use crate::error::{self, Stage, Step, Stop};
use crate::same_file::SameFile;
use crate::tx::{Limits, Tx};
use crate::wait::Hub;

/// Operations that may wait for their turn; one more is refused, not queued.
const QUEUE: usize = 16_384;
/// Operations of one transaction at the most: bounds what a crash undoes and how long one holds
/// the file.
const GROUP: usize = 512;
/// How many operations a commit served (C4): its buckets and help stand in the application's table.
const BATCH_SIZE: &str = "dlock_store_batch_size";

/// What a connection's transactions may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The one writer.
    Write,
    /// A reader, on a snapshot as fresh as its start.
    Read,
}

/// What a writer has done so far.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) operations: AtomicU64,
}

pub(crate) struct Setup {
    pub(crate) counters: Arc<Counters>,
    pub(crate) mode: Mode,
    pub(crate) connection: SqliteConnection,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) hub: Arc<Hub>,
    pub(crate) poll_interval: Duration,
    pub(crate) file: SameFile,
    /// Failures are logged once a second at the most.
    pub(crate) quiet_until: Moment,
}

pub(crate) struct Worker {
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    clock: Arc<dyn Clock>,
    mode: Mode,
}

enum Message {
    Job(Box<dyn Job>),
    /// Look at the hub again: somebody waits now.
    Nudge,
}

impl Worker {
    pub(crate) fn start(name: &str, setup: Setup) -> std::io::Result<Self> {
        let (queue, jobs) = sync_channel(QUEUE);
        let (clock, mode) = (Arc::clone(&setup.clock), setup.mode);
        let thread = std::thread::Builder::new()
            .name(format!("dlock-{name}"))
            .spawn(move || run(setup, &jobs))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), clock, mode })
    }

    /// Runs an operation in the next group and answers after its commit.
    ///
    /// Cancellation: an operation whose turn has not come is never run; otherwise it runs to its
    /// end and its answer is dropped.
    pub(crate) async fn call<T, F>(&self, by: Deadline, operation: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Step<T> + Send + 'static,
    {
        if by.is_past(self.clock.now()) {
            return Err(LockError::contention("the call's deadline had passed before it began"));
        }
        let turn = Turn::default();
        let (reply, answer) = oneshot::channel();
        let job = OneJob {
            turn: Arc::clone(&turn.0),
            operation,
            outcome: None,
            spoiled: false,
            reply: Some(reply),
        };
        self.send(Message::Job(Box::new(job)))?;
        tokio::select! {
            // Answered first: an answer that is there counts even when the deadline is, too.
            biased;
            answered = answer => answered.unwrap_or_else(|_| {
                Err(self.perhaps(LockError::contention("the store stopped")))
            }),
            // Dropping the answer's receiver loses nothing but the answer.
            () = self.clock.sleep_until(by.moment()) => {
                let late = LockError::contention("the store did not answer by the call's deadline");
                if turn.give_up() { Err(late) } else { Err(self.perhaps(late)) }
            }
        }
    }

    /// An error of a call that ran, or may have: only writes can have changed anything.
    fn perhaps(&self, error: LockError) -> LockError {
        if self.mode == Mode::Write { error.maybe_applied() } else { error }
    }

    pub(crate) fn nudge(&self) {
        // A full queue is not idle, and an idle worker's queue is not full.
        let _ = self.send(Message::Nudge);
    }

    fn send(&self, message: Message) -> Result<()> {
        let stopped = || LockError::contention("the store is closed");
        self.queue.as_ref().ok_or_else(stopped)?.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => LockError::contention("too many calls wait for the store"),
            TrySendError::Disconnected(_) => stopped(),
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was a bug; the callers have had their `Unknown`.
            let _ = thread.join();
        }
    }
}

const WAITING: u8 = 0;
const RUNNING: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Whether an operation's turn has come; its caller's end. Dropping it gives up.
#[derive(Default)]
struct Turn(Arc<AtomicU8>);

impl Turn {
    /// Whether the operation is certain never to run.
    fn give_up(&self) -> bool {
        let swap = self.0.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire);
        matches!(swap, Ok(_) | Err(GIVEN_UP))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_up();
    }
}

trait Job: Send {
    /// Whether it is to run at all.
    fn begin(&self) -> bool;
    /// Runs inside a transaction; an error spoils the transaction. May run again in another one.
    fn run(&mut self, tx: &mut Tx<'_>) -> std::result::Result<(), DieselError>;
    /// Answers, after the commit or its failure.
    fn answer(self: Box<Self>, failure: Option<LockError>);
}

struct OneJob<T, F> {
    turn: Arc<AtomicU8>,
    operation: F,
    outcome: Option<Result<T>>,
    /// The operation itself had the transaction rolled back; its outcome says why.
    spoiled: bool,
    reply: Option<oneshot::Sender<Result<T>>>,
}

impl<T, F> Job for OneJob<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Step<T> + Send,
{
    fn begin(&self) -> bool {
        let swap =
            self.turn.compare_exchange(WAITING, RUNNING, Ordering::AcqRel, Ordering::Acquire);
        // Running already: it is run again after its group was rolled back.
        matches!(swap, Ok(_) | Err(RUNNING))
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> std::result::Result<(), DieselError> {
        (self.outcome, self.spoiled) = (None, false);
        match (self.operation)(tx) {
            Ok(answer) => self.outcome = Some(Ok(answer)),
            Err(Stop::Refused(error)) => {
                // An incident may turn up in the middle of a change, and half a change must not
                // be committed. Other refusals come before any, or after ending what had expired.
                self.spoiled = matches!(error.kind(), ErrorKind::InvariantViolated(_));
                self.outcome = Some(Err(error));
                if self.spoiled {
                    return Err(DieselError::RollbackTransaction);
                }
            }
            Err(Stop::Storage(error)) => return Err(error),
        }
        Ok(())
    }

    fn answer(mut self: Box<Self>, failure: Option<LockError>) {
        let outcome = match failure {
            Some(error) if !self.spoiled => Err(error),
            _ => self.outcome.take().unwrap_or_else(|| {
                Err(LockError::contention("the operation was not run").maybe_applied())
            }),
        };
        if let Some(reply) = self.reply.take() {
            // Nobody there: the caller has gone, and the port says what that leaves behind.
            let _ = reply.send(outcome);
        }
    }
}

fn run(mut setup: Setup, jobs: &Receiver<Message>) {
    let mut version = data_version(&mut setup.connection);
    loop {
        let first = if setup.mode == Mode::Write && setup.hub.anybody() {
            match jobs.recv_timeout(setup.poll_interval) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        } else {
            match jobs.recv() {
                Ok(message) => Some(message),
                Err(_) => return,
            }
        };
        if let Some(message) = first {
            let group = gather(message, jobs);
            run_group(&mut setup, group);
        }
        // The writer's own commits don't move what it sees here: only other processes' do.
        if setup.mode == Mode::Write && setup.hub.anybody() {
            let seen = data_version(&mut setup.connection);
            if seen != version {
                version = seen;
                setup.hub.wake_all();
            }
        }
    }
}

fn gather(first: Message, jobs: &Receiver<Message>) -> Vec<Box<dyn Job>> {
    let mut group = Vec::new();
    let mut next = Some(first);
    while let Some(message) = next.take() {
        if let Message::Job(job) = message {
            group.push(job);
        }
        if group.len() < GROUP {
            next = jobs.try_recv().ok();
        }
    }
    group
}

fn run_group(setup: &mut Setup, mut group: Vec<Box<dyn Job>>) {
    if group.is_empty() {
        return;
    }
    if let Err(error) = setup.file.check() {
        tracing::error!(%error, "the database is not the file that was opened");
        for job in group {
            job.answer(Some(error.clone()));
        }
        return;
    }
    match transact(setup, &mut group) {
        Ok(()) => {
            let operations = u64::try_from(group.len()).unwrap_or(u64::MAX);
            setup.counters.commits.fetch_add(1, Ordering::Relaxed);
            setup.counters.operations.fetch_add(operations, Ordering::Relaxed);
            if setup.mode == Mode::Write {
                let size = u32::try_from(group.len()).unwrap_or(u32::MAX);
                metrics::histogram!(BATCH_SIZE, "backend" => "embedded").record(size);
            }
            group.into_iter().for_each(|job| job.answer(None));
        }
        // Only a transaction that one of several members spoiled is worth another try.
        Err((error, stage)) if group.len() == 1 || stage != Stage::Inside => {
            let error = match setup.mode {
                Mode::Write => error::driver(error, stage),
                Mode::Read => error::driver(error, Stage::Inside),
            };
            if stage == Stage::Commit {
                // It may be in the log after all, and what it released may be free.
                setup.hub.wake_all();
            }
            // An incident in an operation is logged by whoever asked for it.
            let now = setup.clock.now();
            if now >= setup.quiet_until {
                setup.quiet_until = now.after(Duration::from_secs(1));
                let cause = std::error::Error::source(&error);
                tracing::warn!(%error, ?cause, "a transaction failed");
            }
            for job in group {
                job.answer(Some(error.clone()));
            }
        }
        Err(_) => {
            for job in group {
                run_group(setup, vec![job]);
            }
        }
    }
}

fn transact(
    setup: &mut Setup,
    group: &mut Vec<Box<dyn Job>>,
) -> std::result::Result<(), (DieselError, Stage)> {
    let begin = match setup.mode {
        Mode::Write => "BEGIN IMMEDIATE",
        Mode::Read => "BEGIN",
    };
    setup.connection.batch_execute(begin).map_err(|error| (error, Stage::Begin))?;
    // Their turn comes only now: whoever gave up while another process held the file is left out.
    group.retain(|job| job.begin());
    let ended = run_all(setup, group).map_err(|error| (error, Stage::Inside)).and_then(|ended| {
        let committed = setup.connection.batch_execute("COMMIT");
        committed.map(|()| ended).map_err(|error| (error, Stage::Commit))
    });
    match ended {
        Ok(ended) => {
            setup.hub.released(&ended);
            Ok(())
        }
        Err(failure) => {
            // SQLite may have rolled back by itself; then this says so and nothing is wrong.
            let _ = setup.connection.batch_execute("ROLLBACK");
            Err(failure)
        }
    }
}

fn run_all(
    setup: &mut Setup,
    group: &mut [Box<dyn Job>],
) -> std::result::Result<Vec<dlock_domain::LockKey>, DieselError> {
    let mut tx = Tx::begin(&mut setup.connection, &*setup.clock, setup.limits)?;
    for job in group {
        job.run(&mut tx)?;
    }
    tx.finish()
}

fn data_version(connection: &mut SqliteConnection) -> i32 {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Integer)]
        data_version: i32,
    }
    // An error now will be met, and answered, by the next operation.
    diesel::sql_query("PRAGMA data_version")
        .get_result::<Row>(connection)
        .map_or(0, |row| row.data_version)
}
