//! One operation: a call, its answer, and the moments of both.

use std::collections::HashSet;

use crate::ids::{Attempt, Incarnation, Key, Nanos, OpId, ProcessId, Session, Token};

/// What a client asked (the calls of C2's `LockService` that change or show a lock).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Ask for the lock; waiting, if any, is between call and answer.
    Acquire {
        /// The lock.
        key: Key,
        /// The caller's attempt id; a repeat carries the same one.
        attempt: Attempt,
        /// The session to hold it under; `None` asks for one of its own.
        session: Option<Session>,
        /// The time to live that was asked for, in nanoseconds.
        ttl_ns: u64,
    },
    /// Renew one grant.
    Renew {
        /// The lock.
        key: Key,
        /// The grant's token.
        token: Token,
    },
    /// Keep a session alive and check the grants listed.
    KeepAlive {
        /// The session.
        session: Session,
        /// What the caller believes it holds.
        held: Vec<(Key, Token)>,
    },
    /// Release one grant.
    Release {
        /// The lock.
        key: Key,
        /// The grant's token.
        token: Token,
    },
    /// Settle an attempt of unknown outcome for good.
    Forget {
        /// The lock.
        key: Key,
        /// The attempt to settle.
        attempt: Attempt,
    },
    /// Break a lock.
    Revoke {
        /// The lock.
        key: Key,
        /// The only token it may break; `None` breaks whatever is there.
        expected: Option<Token>,
    },
    /// Raise the floor of every key in a namespace, ending its grants.
    RaiseFloor {
        /// The namespace.
        namespace: String,
        /// The floor asked for.
        at_least: Token,
    },
    /// End a session and all it holds.
    CloseSession {
        /// The session.
        session: Session,
    },
    /// Look at a lock, linearizably.
    Inspect {
        /// The lock.
        key: Key,
    },
}

/// What the client was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To acquire: granted.
    Granted {
        /// The fencing token.
        token: Token,
        /// The session that holds the grant.
        session: Session,
        /// The client's own safe deadline by INV-03 (the moment it sent the
        /// request that last set the lease, plus `valid_ms`; margin included).
        valid_until: Nanos,
    },
    /// To acquire: not granted (held by another, or given up waiting).
    NotGranted,
    /// To renew: renewed.
    Renewed {
        /// The client's new safe deadline by INV-03.
        valid_until: Nanos,
    },
    /// To keep alive: the session lives, and so does every grant that was listed
    /// and is not in `lost`.
    Kept {
        /// The new safe deadline by INV-03 of the grants seen live.
        valid_until: Nanos,
        /// Listed grants that are not there.
        lost: Vec<(Key, Token)>,
    },
    /// The store answered, and the grant or session is not there.
    Lost,
    /// To release and forget: whether this call removed the grant.
    Released(bool),
    /// To revoke: a grant was ended.
    Revoked {
        /// The ended grant's token.
        previous: Token,
        /// The floor that now holds for the key.
        floor: Token,
    },
    /// To revoke: nothing was held; the floor was raised all the same.
    Free {
        /// The floor that now holds for the key.
        floor: Token,
    },
    /// To a conditional revoke: another token, or none, is there; no effect.
    Mismatch {
        /// The token that is there.
        current: Option<Token>,
    },
    /// To raise floor: raised.
    FloorRaised {
        /// The floor that now holds for the namespace.
        floor: Token,
        /// How many live grants were ended.
        grants_ended: u64,
    },
    /// To close session: whether it was there.
    Closed(bool),
    /// To inspect: the live grant's token, if any.
    Info(Option<Token>),
    /// A definite failure: no effect, now or later (C2, `applied()` = `No`).
    Failed,
    /// Nobody knows: it may take effect at any time after its call, or never
    /// (C2, `applied()` = `Unknown`; trap 12).
    Unknown,
}

/// One call and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its place in the history.
    pub id: OpId,
    /// Who called.
    pub process: ProcessId,
    /// Through which life of which lock server, where that is known.
    pub through: Option<Incarnation>,
    /// The moment before the call left.
    pub invoked: Nanos,
    /// The moment after its answer arrived; `None`: it never did.
    pub returned: Option<Nanos>,
    /// What was asked.
    pub call: Call,
    /// What was answered; `Unknown` if nothing was.
    pub answer: Answer,
}

/// Why an operation cannot be part of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It returned before it was invoked: not one monotonic clock.
    ReturnedBeforeInvoked,
    /// There is an answer, yet no moment at which it came.
    AnswerWithoutReturn,
    /// A call of this kind cannot be answered like that.
    AnswerDoesNotFit,
}

impl Operation {
    /// The moment and content of an answer that says something certain; `None`
    /// if the outcome is unknown.
    pub fn reply(&self) -> Option<(Nanos, &Answer)> {
        match (&self.answer, self.returned) {
            (Answer::Unknown, _) | (_, None) => None,
            (answer, Some(at)) => Some((at, answer)),
        }
    }

    /// Whether it certainly had no effect and never will.
    pub fn certainly_did_nothing(&self) -> bool {
        matches!(
            self.reply(),
            Some((_, Answer::Failed | Answer::Mismatch { .. } | Answer::NotGranted))
        )
    }

    /// What makes this operation unfit for a history, if anything.
    pub fn flaw(&self) -> Option<Flaw> {
        match self.returned {
            Some(at) if at < self.invoked => return Some(Flaw::ReturnedBeforeInvoked),
            None if self.answer != Answer::Unknown => return Some(Flaw::AnswerWithoutReturn),
            _ => {}
        }
        (!self.call.admits(&self.answer)).then_some(Flaw::AnswerDoesNotFit)
    }

    /// The grants that a successful renew or keep-alive saw live, with the
    /// deadline it gave them (INV-03: a deadline moves only for grants seen live).
    pub fn confirmed(&self) -> Option<(Nanos, Vec<(&Key, Token)>)> {
        match (&self.call, self.reply()?.1) {
            (Call::Renew { key, token }, Answer::Renewed { valid_until }) => {
                Some((*valid_until, vec![(key, *token)]))
            }
            (Call::KeepAlive { held, .. }, Answer::Kept { valid_until, lost }) => {
                let lost: HashSet<_> = lost.iter().collect();
                let seen = held.iter().filter(|entry| !lost.contains(entry));
                Some((*valid_until, seen.map(|(key, token)| (key, *token)).collect()))
            }
            _ => None,
        }
    }
}

impl Call {
    /// Whether an answer of this kind can follow this call.
    pub fn admits(&self, answer: &Answer) -> bool {
        use Answer as A;
        match answer {
            A::Failed | A::Unknown => true,
            A::Granted { .. } | A::NotGranted => matches!(self, Self::Acquire { .. }),
            A::Renewed { .. } => matches!(self, Self::Renew { .. }),
            A::Kept { .. } => matches!(self, Self::KeepAlive { .. }),
            // An acquire or a forget under a session that is gone is answered so, too.
            A::Lost => matches!(
                self,
                Self::Acquire { .. }
                    | Self::Renew { .. }
                    | Self::KeepAlive { .. }
                    | Self::Release { .. }
                    | Self::Forget { .. }
            ),
            A::Released(_) => matches!(self, Self::Release { .. } | Self::Forget { .. }),
            A::Revoked { .. } | A::Free { .. } => matches!(self, Self::Revoke { .. }),
            A::Mismatch { .. } => matches!(self, Self::Revoke { expected: Some(_), .. }),
            A::FloorRaised { .. } => matches!(self, Self::RaiseFloor { .. }),
            A::Closed(_) => matches!(self, Self::CloseSession { .. }),
            A::Info(_) => matches!(self, Self::Inspect { .. }),
        }
    }

    /// The one key the call names, if it names one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Acquire { key, .. }
            | Self::Renew { key, .. }
            | Self::Release { key, .. }
            | Self::Forget { key, .. }
            | Self::Revoke { key, .. }
            | Self::Inspect { key } => Some(key),
            Self::KeepAlive { .. } | Self::RaiseFloor { .. } | Self::CloseSession { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{acquired, key, op};

    #[test]
    fn an_answer_must_fit_its_call_and_come_after_it() {
        let good = acquired("k", 1, 5, 10..20, 90);
        assert_eq!(good.flaw(), None);
        let early = Operation { returned: Some(Nanos(9)), ..good.clone() };
        assert_eq!(early.flaw(), Some(Flaw::ReturnedBeforeInvoked));
        let silent = Operation { returned: None, ..good.clone() };
        assert_eq!(silent.flaw(), Some(Flaw::AnswerWithoutReturn));
        let odd = Operation { answer: Answer::Released(true), ..good };
        assert_eq!(odd.flaw(), Some(Flaw::AnswerDoesNotFit));
    }

    #[test]
    fn a_time_out_is_no_reply_though_it_came_at_some_moment() {
        let good = acquired("k", 1, 5, 10..20, 90);
        assert_eq!(good.reply().map(|(at, _)| at), Some(Nanos(20)));
        assert_eq!(Operation { answer: Answer::Unknown, ..good }.reply(), None);
    }

    #[test]
    fn a_keep_alive_confirms_what_it_lists_less_what_is_lost() {
        let held = vec![(key("a"), Token(1)), (key("b"), Token(2))];
        let call = Call::KeepAlive { session: Session::new("s"), held };
        let lost = vec![(key("a"), Token(1))];
        let kept = op(1..2, call, Answer::Kept { valid_until: Nanos(9), lost });
        assert_eq!(kept.confirmed(), Some((Nanos(9), vec![(&key("b"), Token(2))])));
        let unknown = Operation { answer: Answer::Unknown, ..kept };
        assert_eq!(unknown.confirmed(), None);
    }
}
