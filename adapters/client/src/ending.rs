//! How an acquire ends: handed over, given up, or left to be settled (INV-09, trap 38).

use std::sync::Arc;

use dlock_domain::{ErrorKind, LockError, LockHandle, LockInfo, Result, SessionId};

use crate::{
    acquire::{Acquisition, Holder},
    core::Core,
    private::Private,
    settle::Loose,
};

/// What an acquire's caller is told.
pub(crate) enum Outcome {
    Granted(Unclaimed),
    NotGranted(Option<LockInfo>),
}

/// How the tries ended.
pub(crate) enum Ended {
    Granted(LockHandle),
    NotGranted(Option<LockInfo>),
    Failed(LockError),
    /// The caller went away: whatever is on its way is of unknown outcome.
    Left,
}

impl Acquisition {
    /// In a session of somebody else's: what is unknown is settled by its attempt.
    pub(crate) async fn end_shared(self, session: SessionId, ended: Ended) -> Result<Outcome> {
        let loose = Loose::Attempt(self.key.clone(), session, self.attempt);
        match ended {
            Ended::Granted(handle) => Ok(Outcome::Granted(self.unclaimed(handle, loose))),
            // "Not granted" after a try of unknown outcome would be a guess. A caller who chose the
            // attempt's id may have repeated it elsewhere, and settling would end what the repeat
            // was given (trap 13): the answer is unknown. An attempt that only this client knows is
            // settled first, so that it can never be granted behind the caller's back.
            Ended::NotGranted(_) if self.unknown && self.repeatable => {
                let word = "held by somebody else, but an earlier try of this attempt may be \
                            granted yet: repeat it, or forget it";
                Err(LockError::contention(word).maybe_applied())
            }
            Ended::NotGranted(holder) if self.unknown => {
                match self.core.forget_attempt(&self.key, session, self.attempt).await {
                    Ok(_) => Ok(Outcome::NotGranted(holder)),
                    Err(error) => {
                        self.settle_if_alone(loose);
                        Err(error.maybe_applied())
                    }
                }
            }
            Ended::NotGranted(holder) => Ok(Outcome::NotGranted(holder)),
            Ended::Failed(error) => {
                if self.unknown {
                    self.settle_if_alone(loose);
                }
                Err(error)
            }
            Ended::Left => {
                self.settle_if_alone(loose);
                Err(left())
            }
        }
    }

    /// In a session of the lock's own: closing it settles everything.
    pub(crate) async fn end_private(self, private: &Arc<Private>, ended: Ended) -> Result<Outcome> {
        match ended {
            Ended::Granted(handle) => {
                private.granted();
                let loose = Loose::Session(handle.session);
                Ok(Outcome::Granted(self.unclaimed(handle, loose)))
            }
            Ended::NotGranted(holder) => {
                let Some(session) = private.leave(true) else {
                    return Ok(Outcome::NotGranted(holder));
                };
                if self.unknown {
                    // Only once it is closed is it certain that nothing was granted.
                    if let Err(error) = self.core.close(session).await {
                        drop(self.core.settle(Loose::Session(session)));
                        return Err(error.maybe_applied());
                    }
                } else {
                    self.core.settle_briefly(Loose::Session(session)).await;
                }
                Ok(Outcome::NotGranted(holder))
            }
            Ended::Failed(error) => {
                // Whoever chose the attempt's id may ask again, with the same session; what is
                // then left ends with its lease.
                let spent = !self.repeatable || !error.is_transient();
                let expired = error.kind() == ErrorKind::SessionExpired;
                if let Some(session) = private.leave(spent)
                    && !expired
                {
                    self.core.settle_briefly(Loose::Session(session)).await;
                }
                // The caller did not ask for a session: what ended is the wait, and it held
                // nothing.
                let word = "the wait was not kept alive in time: ask again, as a new attempt";
                Err(if expired { LockError::contention(word).caused_by(error) } else { error })
            }
            Ended::Left => {
                if let Some(session) = private.leave(!self.repeatable) {
                    drop(self.core.settle(Loose::Session(session)));
                }
                Err(left())
            }
        }
    }

    /// Settles what nobody else can ask for.
    fn settle_if_alone(&self, loose: Loose) {
        if !self.repeatable {
            drop(self.core.settle(loose));
        }
    }

    fn unclaimed(&self, handle: LockHandle, loose: Loose) -> Unclaimed {
        let core = Arc::clone(&self.core);
        let private = match &self.holder {
            Holder::Session(_) => None,
            Holder::Private(private) => Some(Arc::clone(private)),
        };
        Unclaimed { handle: Some(handle), core, private, loose, repeatable: self.repeatable }
    }
}

fn left() -> LockError {
    LockError::contention("the caller left").maybe_applied()
}

/// A grant on its way to its caller. If it is dropped before it is claimed, nobody has it.
pub(crate) struct Unclaimed {
    handle: Option<LockHandle>,
    core: Arc<Core>,
    private: Option<Arc<Private>>,
    loose: Loose,
    repeatable: bool,
}

impl Unclaimed {
    /// Hands the grant over; `None` never happens, a grant being claimed once.
    pub(crate) fn claim(mut self) -> Option<LockHandle> {
        self.handle.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if self.handle.take().is_none() || self.repeatable {
            return;
        }
        // A private attempt that is not repeatable has this one call, so its session is idle now.
        let closes = self.private.as_ref().is_none_or(|private| private.end().is_some());
        if closes {
            drop(self.core.settle(self.loose.clone()));
        }
    }
}
