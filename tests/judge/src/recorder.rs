//! The recorder: many threads write one history, within a bound.
//!
//! A call is written down *before* it leaves, so a client that dies, hangs or
//! drops its [`Ticket`] leaves an operation of unknown outcome, never a hole.

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::history::{Evidence, History};
use crate::ids::{Incarnation, Nanos, OpId, ProcessId};
use crate::operation::{Answer, Call, Flaw, Operation};

/// Writes a history from many threads; it has no clock, every method is told the time.
#[derive(Debug)]
pub struct Recorder {
    capacity: usize,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    operations: Vec<Operation>,
    evidence: Vec<Evidence>,
}

/// An operation that has begun. Dropped without [`Recorder::finish`], its outcome
/// stays unknown.
#[derive(Debug)]
#[must_use = "an operation that is never finished stays unknown in the history"]
pub struct Ticket {
    id: OpId,
}

/// Why the recorder did not write something down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The capacity is used up. The call must then not be made: a history that
    /// lacks operations accuses the innocent.
    Full {
        /// How many operations and pieces of evidence fit.
        capacity: usize,
    },
    /// The answer cannot be true of that call; the operation stays unknown.
    Refused(Flaw),
    /// The ticket is of another recorder.
    StrangeTicket,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { capacity } => write!(f, "the recorder is full at {capacity} entries"),
            Self::Refused(flaw) => write!(f, "the answer does not fit its call: {flaw:?}"),
            Self::StrangeTicket => f.write_str("the ticket belongs to another recorder"),
        }
    }
}

impl Error for RecordError {}

impl Recorder {
    /// A recorder for at most `capacity` operations and pieces of evidence together.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, pages: Mutex::default() }
    }

    /// Writes down that `process` is about to make `call`; `now` is taken before
    /// anything leaves.
    ///
    /// # Errors
    /// [`RecordError::Full`]: then do not make the call.
    pub fn begin(&self, now: Nanos, process: ProcessId, call: Call) -> Result<Ticket, RecordError> {
        self.open(now, process, None, call)
    }

    /// [`begin`](Self::begin), saying through which life of which lock server.
    ///
    /// # Errors
    /// [`RecordError::Full`]: then do not make the call.
    pub fn begin_through(
        &self,
        now: Nanos,
        process: ProcessId,
        through: Incarnation,
        call: Call,
    ) -> Result<Ticket, RecordError> {
        self.open(now, process, Some(through), call)
    }

    fn open(
        &self,
        invoked: Nanos,
        process: ProcessId,
        through: Option<Incarnation>,
        call: Call,
    ) -> Result<Ticket, RecordError> {
        let mut pages = self.room()?;
        let id = OpId(pages.operations.len());
        let answer = Answer::Unknown;
        pages.operations.push(Operation {
            id,
            process,
            through,
            invoked,
            returned: None,
            call,
            answer,
        });
        Ok(Ticket { id })
    }

    /// Writes down the answer; `now` is taken after it has arrived.
    ///
    /// # Errors
    /// [`RecordError::Refused`] if `now` is before the call or the answer is not
    /// one to that call, [`RecordError::StrangeTicket`] for another recorder's
    /// ticket. Either leaves what is written as it was.
    pub fn finish(&self, ticket: Ticket, now: Nanos, answer: Answer) -> Result<(), RecordError> {
        let mut pages = self.pages();
        let operation = pages.operations.get_mut(ticket.id.0).ok_or(RecordError::StrangeTicket)?;
        if now < operation.invoked {
            return Err(RecordError::Refused(Flaw::ReturnedBeforeInvoked));
        }
        if !operation.call.admits(&answer) {
            return Err(RecordError::Refused(Flaw::AnswerDoesNotFit));
        }
        operation.returned = Some(now);
        operation.answer = answer;
        Ok(())
    }

    /// Writes down what was seen beside the calls.
    ///
    /// # Errors
    /// [`RecordError::Full`].
    pub fn note(&self, evidence: Evidence) -> Result<(), RecordError> {
        self.room()?.evidence.push(evidence);
        Ok(())
    }

    /// The history so far; what has begun and not finished is unknown in it.
    pub fn snapshot(&self) -> History {
        let pages = self.pages();
        History::trusted(pages.operations.clone(), pages.evidence.clone())
    }

    /// The history; what was never finished is unknown in it.
    pub fn into_history(self) -> History {
        let pages = self.pages.into_inner().unwrap_or_else(PoisonError::into_inner);
        History::trusted(pages.operations, pages.evidence)
    }

    fn room(&self) -> Result<MutexGuard<'_, Pages>, RecordError> {
        let pages = self.pages();
        if pages.operations.len() + pages.evidence.len() < self.capacity {
            Ok(pages)
        } else {
            Err(RecordError::Full { capacity: self.capacity })
        }
    }

    // A thread that panicked elsewhere leaves whole entries behind: each is one push.
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Session;
    use crate::script::key;
    use std::thread;

    fn inspect() -> Call {
        Call::Inspect { key: key("k") }
    }

    #[test]
    fn a_dropped_ticket_leaves_an_unknown_operation() {
        let recorder = Recorder::new(10);
        drop(recorder.begin(Nanos(1), ProcessId(1), inspect()).unwrap());
        let history = recorder.into_history();
        let only = &history.operations()[0];
        assert_eq!((only.returned, &only.answer), (None, &Answer::Unknown));
        assert_eq!(only.reply(), None);
    }

    #[test]
    fn it_refuses_beyond_its_capacity() {
        let recorder = Recorder::new(2);
        let first = recorder.begin(Nanos(1), ProcessId(1), inspect()).unwrap();
        let session = Session::new("s");
        recorder.note(Evidence::EarlyExpiry { session, seen_gone: Nanos(2) }).unwrap();
        let full = recorder.begin(Nanos(3), ProcessId(1), inspect()).unwrap_err();
        assert_eq!(full, RecordError::Full { capacity: 2 });
        recorder.finish(first, Nanos(4), Answer::Info(None)).unwrap();
        let history = recorder.into_history();
        assert_eq!((history.operations().len(), history.evidence().len()), (1, 1));
    }

    #[test]
    fn it_refuses_answers_that_cannot_be_and_keeps_them_unknown() {
        let recorder = Recorder::new(2);
        let early = recorder.begin(Nanos(5), ProcessId(1), inspect()).unwrap();
        let odd = recorder.begin(Nanos(5), ProcessId(1), inspect()).unwrap();
        assert_eq!(
            recorder.finish(early, Nanos(4), Answer::Info(None)),
            Err(RecordError::Refused(Flaw::ReturnedBeforeInvoked))
        );
        assert_eq!(
            recorder.finish(odd, Nanos(6), Answer::Closed(true)),
            Err(RecordError::Refused(Flaw::AnswerDoesNotFit))
        );
        assert!(recorder.snapshot().operations().iter().all(|o| o.reply().is_none()));
    }

    #[test]
    fn many_threads_write_one_history_and_no_answer_goes_astray() {
        let recorder = Recorder::new(1_000);
        thread::scope(|scope| {
            for client in 0..10_u32 {
                let recorder = &recorder;
                scope.spawn(move || {
                    for round in 0..100_u64 {
                        let at = Nanos(round * 10);
                        let through = Incarnation { server: 1, epoch: client };
                        let call = inspect();
                        let ticket = recorder
                            .begin_through(at, ProcessId(client), through, call)
                            .expect("there is room");
                        let answer = Answer::Info(Some(crate::ids::Token(u64::from(client))));
                        recorder.finish(ticket, at, answer).expect("it fits");
                    }
                });
            }
        });
        let history = recorder.into_history();
        assert_eq!(history.operations().len(), 1_000);
        for (at, operation) in history.operations().iter().enumerate() {
            assert_eq!(operation.id, OpId(at));
            let token = crate::ids::Token(u64::from(operation.process.0));
            assert_eq!(operation.answer, Answer::Info(Some(token)));
        }
    }
}
