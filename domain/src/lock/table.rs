//! The transitions.

use crate::{LockOutcome, TokenFloor};

use super::{Effect, Grant, LockEvent, LockState, Proposal};

impl LockState {
    /// Applies one event: the next state, and what came of it.
    #[must_use]
    pub fn apply(self, event: LockEvent) -> (Self, Effect) {
        match (self, event) {
            (Self::Free { fence }, LockEvent::Insert(proposal)) => insert(fence, proposal),
            (held @ Self::Held { .. }, LockEvent::Insert(proposal)) => repeat(held, &proposal),

            (state, LockEvent::Extend(token)) => {
                let live = state.grant().is_some_and(|grant| grant.token == token);
                (state, if live { Effect::Extended } else { Effect::Lost })
            }

            (state, LockEvent::Delete(token)) => end_if(state, |grant| grant.token == token),
            (state, LockEvent::Forget(attempt)) => end_if(state, |grant| grant.attempt == attempt),
            (state, LockEvent::Expire(session) | LockEvent::SessionClosed(session)) => {
                end_if(state, |grant| grant.session == session)
            }

            (state, LockEvent::Revoke { expected, floor }) => revoke(state, expected, floor),

            (state, LockEvent::FloorRaised(floor)) => {
                let fence = state.fence().max(floor);
                let effect = state.grant().map_or(Effect::Nothing, |g| Effect::Ended(g.token));
                (Self::Free { fence }, effect)
            }
        }
    }
}

fn insert(fence: TokenFloor, proposal: Proposal) -> (LockState, Effect) {
    if !fence.admits(proposal.token) {
        return (LockState::Free { fence }, Effect::TokenTooLow);
    }
    let Proposal { session, attempt, token, at } = proposal;
    let grant = Grant { token, session, attempt, acquired_at: at };
    (LockState::Held { fence: TokenFloor::at(token), grant }, Effect::Granted)
}

/// An insert that meets a grant: its own, or somebody else's.
fn repeat(state: LockState, proposal: &Proposal) -> (LockState, Effect) {
    let effect = match state.grant() {
        Some(grant) if grant.attempt == proposal.attempt => {
            if grant.session == proposal.session {
                Effect::Recognised(grant.token)
            } else {
                Effect::AttemptMisused
            }
        }
        _ => Effect::Held,
    };
    (state, effect)
}

fn end_if(state: LockState, matches: impl Fn(&Grant) -> bool) -> (LockState, Effect) {
    match state {
        LockState::Held { fence, grant } if matches(&grant) => {
            (LockState::Free { fence }, Effect::Ended(grant.token))
        }
        other => (other, Effect::Nothing),
    }
}

fn revoke(
    state: LockState,
    expected: Option<crate::FencingToken>,
    floor: TokenFloor,
) -> (LockState, Effect) {
    let current = state.grant().map(|grant| grant.token);
    if expected.is_some() && expected != current {
        return (state, Effect::Revoke(LockOutcome::Mismatch { current }));
    }
    if floor <= state.fence() {
        return (state, Effect::TokenTooLow);
    }
    let outcome = match current {
        Some(previous) => LockOutcome::Revoked { previous, floor },
        None => LockOutcome::Free { floor },
    };
    (LockState::Free { fence: floor }, Effect::Revoke(outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AttemptId, FencingToken, SessionId, WallTime};

    fn token(n: u64) -> FencingToken {
        FencingToken::from_user(n).unwrap()
    }
    fn floor(n: u64) -> TokenFloor {
        TokenFloor::new(n).unwrap()
    }
    const fn session(n: u128) -> SessionId {
        SessionId::from_bits(n)
    }
    const fn attempt(n: u128) -> AttemptId {
        AttemptId::from_bits(n)
    }
    fn proposal(s: u128, a: u128, t: u64) -> LockEvent {
        LockEvent::Insert(Proposal {
            session: session(s),
            attempt: attempt(a),
            token: token(t),
            at: WallTime::from_unix_millis(t),
        })
    }
    fn free(fence: u64) -> LockState {
        LockState::Free { fence: floor(fence) }
    }
    /// Held by session 1 for attempt 1 under token 5.
    fn held(fence: u64) -> LockState {
        let grant = Grant {
            token: token(5),
            session: session(1),
            attempt: attempt(1),
            acquired_at: WallTime::from_unix_millis(5),
        };
        LockState::Held { fence: floor(fence), grant }
    }

    /// Every state × every event, spelled out: the table is the specification.
    #[test]
    fn every_state_meets_every_event() {
        use Effect::{
            AttemptMisused, Ended, Extended, Granted, Held, Lost, Nothing, Recognised, TokenTooLow,
        };
        use LockEvent::{Delete, Expire, Extend, FloorRaised, Forget, Revoke, SessionClosed};
        let revoked = |outcome| Effect::Revoke(outcome);
        let unconditional = |n| Revoke { expected: None, floor: floor(n) };
        let expecting = |t, n| Revoke { expected: Some(token(t)), floor: floor(n) };
        let rows: Vec<(LockState, LockEvent, LockState, Effect)> = vec![
            (free(4), proposal(1, 1, 5), held(5), Granted),
            (free(5), proposal(1, 1, 5), free(5), TokenTooLow),
            (free(6), proposal(1, 1, 5), free(6), TokenTooLow),
            (held(5), proposal(1, 1, 9), held(5), Recognised(token(5))),
            (held(5), proposal(2, 1, 9), held(5), AttemptMisused),
            (held(5), proposal(1, 2, 9), held(5), Held),
            (held(5), proposal(2, 2, 9), held(5), Held),
            (free(5), Extend(token(5)), free(5), Lost),
            (held(5), Extend(token(5)), held(5), Extended),
            (held(5), Extend(token(4)), held(5), Lost),
            (held(5), Extend(token(6)), held(5), Lost),
            (free(5), Delete(token(5)), free(5), Nothing),
            (held(5), Delete(token(5)), free(5), Ended(token(5))),
            (held(5), Delete(token(4)), held(5), Nothing),
            (held(5), Delete(token(6)), held(5), Nothing),
            (free(5), Forget(attempt(1)), free(5), Nothing),
            (held(5), Forget(attempt(1)), free(5), Ended(token(5))),
            (held(5), Forget(attempt(2)), held(5), Nothing),
            (free(5), Expire(session(1)), free(5), Nothing),
            (held(5), Expire(session(1)), free(5), Ended(token(5))),
            (held(5), Expire(session(2)), held(5), Nothing),
            (free(5), SessionClosed(session(1)), free(5), Nothing),
            (held(5), SessionClosed(session(1)), free(5), Ended(token(5))),
            (held(5), SessionClosed(session(2)), held(5), Nothing),
            (free(5), unconditional(7), free(7), revoked(LockOutcome::Free { floor: floor(7) })),
            (free(7), unconditional(7), free(7), TokenTooLow),
            (held(5), unconditional(5), held(5), TokenTooLow),
            (
                held(5),
                unconditional(7),
                free(7),
                revoked(LockOutcome::Revoked { previous: token(5), floor: floor(7) }),
            ),
            (
                held(5),
                expecting(5, 7),
                free(7),
                revoked(LockOutcome::Revoked { previous: token(5), floor: floor(7) }),
            ),
            (
                held(5),
                expecting(4, 7),
                held(5),
                revoked(LockOutcome::Mismatch { current: Some(token(5)) }),
            ),
            (free(5), expecting(5, 7), free(5), revoked(LockOutcome::Mismatch { current: None })),
            (free(5), FloorRaised(floor(9)), free(9), Nothing),
            (free(5), FloorRaised(floor(3)), free(5), Nothing),
            (held(5), FloorRaised(floor(9)), free(9), Ended(token(5))),
            (held(5), FloorRaised(floor(3)), free(5), Ended(token(5))),
        ];
        for (state, event, next, effect) in rows {
            let seen = state.clone().apply(event.clone());
            assert_eq!(seen, (next, effect), "{state:?} × {event:?}");
        }
    }

    /// Whatever happens, the fence never falls and never lies below the live grant's token.
    #[test]
    fn inv04_no_event_lowers_the_fence() {
        let events = [
            proposal(1, 1, 6),
            proposal(2, 2, 3),
            LockEvent::Extend(token(5)),
            LockEvent::Delete(token(5)),
            LockEvent::Forget(attempt(1)),
            LockEvent::Revoke { expected: None, floor: floor(2) },
            LockEvent::Revoke { expected: None, floor: floor(8) },
            LockEvent::Expire(session(1)),
            LockEvent::SessionClosed(session(1)),
            LockEvent::FloorRaised(floor(1)),
        ];
        for first in &events {
            for second in &events {
                let mut state = held(5);
                for event in [first, second] {
                    let before = state.fence();
                    state = state.apply(event.clone()).0;
                    assert!(state.fence() >= before, "{first:?} {second:?}");
                    if let Some(grant) = state.grant() {
                        assert!(state.fence() >= TokenFloor::at(grant.token));
                    }
                }
            }
        }
    }
}
