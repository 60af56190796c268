//! The one place through which everything goes to PostgreSQL and comes back.
//!
//! A transaction's statements are sent together, from its begin to its commit, and cost one journey.
//! What decides between them is decided in SQL. Every transaction brings its own settings, whatever
//! the role, the database or a pooler says: isolation, durability, the schema, and how long the
//! server may work on it.
//!
//! A transaction runs in a task of its own to its end (trap 30): a caller who goes away never leaves a
//! connection behind that has one open. What is not answered in time is unknown; its connection is
//! [left](crate::pool::Pools::leave).

use std::{sync::Arc, time::Duration};

use dlock_domain::{Deadline, LockError, Result};
use dlock_ports::Clock;
use futures_util::{FutureExt, future::BoxFuture};

use crate::{
    connection::Line,
    error::{Effect, Failure},
    pool::{self, Lane, Lent, Pools},
};

/// How often a transaction is made that the server refused for the sake of others.
const TRIES: u32 = 5;

/// How long a raise waits at a time for those who are about the tokens: all who come after wait with
/// it. Long enough for a vacuum to be told to give way, which takes PostgreSQL a second.
const INSISTENCE: Duration = Duration::from_millis(1_500);

/// How long it then stands back.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest that the server may ever work on one transaction, or hold it open.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A database.
pub(crate) struct Wire {
    pools: Pools,
    pub(crate) clock: Arc<dyn Clock>,
    schema: String,
}

/// What a transaction is about, and so which lock on the table of locks it begins with. Whoever
/// raises a floor waits for all that may draw a token, and keeps them waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// Sessions, keeping what is held, or looking.
    Others,
    /// Rows of locks: granting, and taking away.
    Locks,
    /// All tokens.
    Tokens,
}

/// How a transaction is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) lane: Lane,
    pub(crate) effect: Effect,
    pub(crate) about: About,
    /// Whether a later statement depends on an earlier answer, so that they go one by one.
    pub(crate) stepwise: bool,
}

impl Terms {
    /// Looking, and nothing else.
    pub(crate) const LOOK: Self =
        Self { lane: Lane::General, effect: Effect::Reads, about: About::Others, stepwise: false };
    /// Taking what may be held by others.
    pub(crate) const TAKE: Self =
        Self { effect: Effect::Writes, about: About::Locks, ..Self::LOOK };
    /// Looking where those who only look cannot tell: what has expired is ended first.
    pub(crate) const FIND_OUT: Self = Self { effect: Effect::Reads, ..Self::LOOK };
    /// Renewing what is held. It draws no token and takes no grant away, so it need not wait for a floor
    /// to be raised.
    pub(crate) const KEEP: Self = Self { lane: Lane::Keeping, about: About::Others, ..Self::TAKE };
    /// Giving back what is held.
    pub(crate) const END: Self = Self { lane: Lane::Ending, ..Self::TAKE };
}

/// A transaction's statements: sent in the order in which their futures are first polled.
pub(crate) type Work<T> =
    Box<dyn Fn(Line) -> BoxFuture<'static, std::result::Result<T, Failure>> + Send + Sync>;

impl Wire {
    pub(crate) fn new(pools: Pools, clock: Arc<dyn Clock>, schema: String) -> Self {
        Self { pools, clock, schema }
    }

    /// Makes a transaction.
    ///
    /// # Errors
    /// `Contention`, `NotLeader`, `Denied`, an incident where the database's own rules were broken.
    /// After an error that says so the transaction may have been done.
    ///
    /// # Cancellation
    /// What was not sent yet never is; what was goes on to its end.
    pub(crate) async fn transact<T: Send + 'static>(
        self: &Arc<Self>,
        terms: Terms,
        by: Deadline,
        work: Work<T>,
    ) -> Result<T> {
        if by.is_past(self.clock.now()) {
            return Err(LockError::contention("the deadline had passed before anything was sent"));
        }
        let work: Arc<Work<T>> = Arc::new(work);
        let mut tries = 1;
        loop {
            // Waited for here, so that whoever goes away leaves the queue.
            let connection = self.pools.get(terms.lane, &*self.clock, by).await?;
            let (wire, work) = (Arc::clone(self), Arc::clone(&work));
            let task = tokio::spawn(async move { wire.once(connection, terms, by, work).await });
            let done = task.await.unwrap_or_else(|error| {
                // The runtime is going away.
                Err(crate::error::with(LockError::contention(error.to_string()), terms.effect))
            });
            match done? {
                Err(failure) if failure.is_worth_repeating() && tries < TRIES => {
                    tracing::debug!(code = failure.code(), "a transaction is made again");
                    tries += 1;
                }
                Err(failure) if failure.is_in_the_way() && terms.about == About::Tokens => {
                    let again = self.clock.now().after(PAUSE);
                    if by.is_past(again) {
                        return Err(failure.into_error(terms.effect));
                    }
                    tracing::debug!("a floor waits to be raised: a transaction is in the way");
                    self.clock.sleep_until(again).await;
                }
                done => return done.map_err(|failure| failure.into_error(terms.effect)),
            }
        }
    }

    async fn once<T: Send + 'static>(
        &self,
        connection: Lent,
        terms: Terms,
        by: Deadline,
        work: Arc<Work<T>>,
    ) -> Result<std::result::Result<T, Failure>> {
        let (line, begin) = (connection.line(), self.begin(terms.about, by));
        let mut run = async move {
            if terms.stepwise {
                step_by_step(line, begin, &work).await
            } else {
                together(line, begin, &work).await
            }
        }
        .boxed();
        let done = tokio::select! {
            done = &mut run => done,
            () = self.clock.sleep_until(by.moment()) => {
                let rest = run.map(|done| matches!(done, Done::Clean(_)));
                self.pools.leave(terms.lane, connection, rest);
                let late = LockError::contention("PostgreSQL did not answer in time");
                return Err(crate::error::with(late, terms.effect));
            }
        };
        match done {
            Done::Clean(answer) => Ok(answer),
            Done::Dirty(failure) => {
                pool::throw_away(connection);
                Ok(Err(failure))
            }
        }
    }

    /// The settings of a transaction, and its first lock.
    fn begin(&self, about: About, by: Deadline) -> String {
        // A millisecond at least: nothing would mean that there is no limit. Less than there is, so
        // that the server's refusal comes before the answer is unknown.
        let left = by.remaining(self.clock.now()).mul_f64(0.9);
        let budget = left.clamp(Duration::from_millis(1), LONGEST);
        let (lock, patience) = match about {
            About::Others => ("", budget),
            About::Locks => ("LOCK TABLE dlock_locks IN ROW EXCLUSIVE MODE;", budget),
            About::Tokens => {
                ("LOCK TABLE dlock_locks IN SHARE ROW EXCLUSIVE MODE;", budget.min(INSISTENCE))
            }
        };
        let (budget, patience, schema) = (budget.as_millis(), patience.as_millis(), &self.schema);
        format!(
            "BEGIN; SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; \
             SELECT set_config('dlock.begun', 'yes', true), \
             set_config('search_path', 'pg_catalog, \"{schema}\", pg_temp', true), \
             set_config('statement_timeout', '{budget}', true), \
             set_config('lock_timeout', '{patience}', true), \
             set_config('idle_in_transaction_session_timeout', '{budget}', true), \
             set_config('TimeZone', 'UTC', true), \
             set_config('jit', 'off', true), \
             set_config('plan_cache_mode', 'auto', true), \
             set_config('synchronous_commit', \
             CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') \
             THEN 'on' ELSE current_setting('synchronous_commit') END, true); {lock}"
        )
    }
}

/// How a transaction ended.
enum Done<T> {
    /// The connection is as before.
    Clean(std::result::Result<T, Failure>),
    /// Nobody knows what the connection is in the middle of.
    Dirty(Failure),
}

async fn together<T>(line: Line, begin: String, work: &Work<T>) -> Done<T> {
    // In this order; what fails in a transaction makes all that follows fail, and the commit undo
    // everything.
    let (begun, answer, committed) =
        futures_util::join!(line.batch(begin), work(line.clone()), line.batch("COMMIT"));
    // Where the transaction was begun at all, what followed was refused for its sake.
    let stood = answer.as_ref().err().and_then(Failure::code) == Some("25P02");
    let begun = begun.map_err(|failure| if stood { failure } else { failure.and_nobody_knows() });
    if let Err(failure) = committed {
        // Whether it was made is not known, even where an earlier answer is the one that is missing;
        // or a commit that was refused has left the transaction open.
        return Done::Dirty(begun.err().or(answer.err()).unwrap_or(failure));
    }
    if let Err(failure) = begun {
        return Done::Dirty(failure);
    }
    Done::Clean(answer)
}

async fn step_by_step<T>(line: Line, begin: String, work: &Work<T>) -> Done<T> {
    let answer = match line.batch(begin).await {
        Ok(()) => work(line.clone()).await,
        Err(failure) => Err(failure),
    };
    let end = if answer.is_ok() { "COMMIT" } else { "ROLLBACK" };
    match (answer, line.batch(end).await) {
        (Err(failure), Ok(())) => Done::Clean(Err(failure)),
        (Ok(answer), Ok(())) => Done::Clean(Ok(answer)),
        (Ok(_), Err(failure)) | (Err(failure), Err(_)) => Done::Dirty(failure),
    }
}
