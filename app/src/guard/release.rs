//! Giving a lock back, and finding out whether it still was there.

use std::sync::Arc;

use dlock_domain::{Applied, ErrorKind, FencingToken, LockKey, Moment, Result, Ttl};
use dlock_ports::Released;

use super::{
    ReleaseError,
    hold::Hold,
    repeat::{Said, repeat},
};
use crate::keeper::Expected;

/// A lock on its way back. Nothing renews it any more.
pub(super) struct Release {
    pub(super) hold: Arc<Hold>,
    pub(super) key: LockKey,
    pub(super) token: FencingToken,
    pub(super) ttl: Ttl,
    /// Until when it was believed in: it is not worth while to try for longer.
    pub(super) until: Moment,
    /// In a shared session the grant is no stray while it is being released; if the release
    /// fails it becomes one, and the keeper sees to it.
    pub(super) expected: Option<Expected>,
}

impl Release {
    /// Releases, trying again while that may help and the lease lasts (C3).
    pub(super) async fn run(self) -> std::result::Result<(), ReleaseError> {
        let Self { hold, key, token, ttl, until, expected } = self;
        let (shared, session) = (hold.shared(), hold.session());
        let mut unknown = false;
        let release = || shared.service.release(&key, token, &session);
        let outcome = repeat(shared, ttl, until, release, |said| judge(said, &mut unknown)).await;
        drop(expected);
        match outcome {
            Ok(Found::There) => Ok(()),
            Ok(Found::Gone) => Err(ReleaseError::Lost),
            Err(error) => Err(ReleaseError::Failed(error)),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    There,
    Gone,
}

/// What one try says; `None`: try again. `released: false`, and "lost", count as loss only if no
/// earlier try had an unknown outcome: it may be the repeat of a release that did happen.
fn judge(said: Said<Released>, unknown: &mut bool) -> Option<Result<Found>> {
    let gone = |unknown: bool| if unknown { Found::There } else { Found::Gone };
    match said {
        Said::Answer(Ok(Released { released: true, .. })) => Some(Ok(Found::There)),
        Said::Answer(Ok(_)) => Some(Ok(gone(*unknown))),
        Said::Answer(Err(error)) => match error.kind() {
            ErrorKind::LockLost | ErrorKind::SessionExpired => Some(Ok(gone(*unknown))),
            _ => {
                *unknown |= error.applied() == Applied::Unknown;
                (!error.is_transient()).then_some(Err(error))
            }
        },
        Said::Nothing => {
            *unknown = true;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use dlock_domain::{Invariant, LockError};
    use dlock_ports::Current;

    use super::*;

    fn answer(released: bool) -> Said<Released> {
        Said::Answer(Ok(Released { released, current: Current::None }))
    }

    fn failure(error: LockError) -> Said<Released> {
        Said::Answer(Err(error))
    }

    #[track_caller]
    fn found(said: Said<Released>, unknown: &mut bool) -> Found {
        judge(said, unknown).unwrap().unwrap()
    }

    #[test]
    fn c3_a_false_is_loss_only_without_an_unknown_try_before() {
        let mut unknown = false;
        assert_eq!(found(answer(true), &mut unknown), Found::There);
        assert!(judge(failure(LockError::contention("refused")), &mut unknown).is_none());
        assert_eq!(found(answer(false), &mut unknown), Found::Gone);
        assert_eq!(found(failure(LockError::lost("")), &mut unknown), Found::Gone);
        assert_eq!(found(failure(LockError::session_expired()), &mut unknown), Found::Gone);

        let cut = LockError::contention("cut").maybe_applied();
        assert!(judge(failure(cut), &mut unknown).is_none());
        assert_eq!(found(answer(false), &mut unknown), Found::There);
        assert_eq!(found(failure(LockError::lost("")), &mut unknown), Found::There);

        let mut unknown = false;
        assert!(judge(Said::Nothing, &mut unknown).is_none());
        assert_eq!(found(answer(false), &mut unknown), Found::There);
    }

    #[test]
    fn inv07_a_refusal_is_neither_released_nor_lost() {
        for error in [
            LockError::incident(Invariant::TokensRise, ""),
            LockError::new(ErrorKind::Denied, ""),
            LockError::limit("lock.max", ""),
        ] {
            assert!(matches!(judge(failure(error), &mut false), Some(Err(_))));
        }
        let passing = LockError::new(ErrorKind::NotLeader, "");
        assert!(judge(failure(passing), &mut false).is_none());
    }
}
