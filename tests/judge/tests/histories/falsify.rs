//! One lie told in a history of a correct lock. Where to tell it is looked up in
//! the raw operations, without the judge's own notion of grants and windows.

use std::collections::HashSet;

use crate::chance::Chance;
use dlock_judge::History;
use dlock_judge::ids::{Attempt, Key, Nanos, Token};
use dlock_judge::operation::{Answer, Call, Operation};

/// What is falsified.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lie {
    /// Two attempts are told the same token.
    DuplicateToken,
    /// Two grants, one after the other, have each other's tokens.
    SwapTokens,
    /// An acquire is told a token that a floor had excluded before.
    TokenAtFloor,
    /// A holder is told a deadline that reaches into the next grant's window.
    LengthenWindow,
    /// An operation with an overtaken token is told that it succeeded.
    StaleSuccess,
}

/// A granting acquire, picked apart.
struct Granted {
    at: usize,
    key: Key,
    attempt: Attempt,
    token: Token,
    invoked: Nanos,
    returned: Nanos,
    valid_until: Nanos,
}

fn granted(operations: &[Operation]) -> Vec<Granted> {
    let pick = |(at, operation): (usize, &Operation)| match (&operation.call, operation.reply()) {
        (
            Call::Acquire { key, attempt, .. },
            Some((returned, Answer::Granted { token, valid_until, .. })),
        ) => Some(Granted {
            at,
            key: key.clone(),
            attempt: *attempt,
            token: *token,
            invoked: operation.invoked,
            returned,
            valid_until: *valid_until,
        }),
        _ => None,
    };
    operations.iter().enumerate().filter_map(pick).collect()
}

/// How many acquires were answered a token that their attempt had been told before.
pub(crate) fn repeats(history: &History) -> usize {
    let mut told = HashSet::new();
    let grants = granted(history.operations());
    grants.iter().filter(|grant| !told.insert((&grant.key, grant.token, grant.attempt))).count()
}

/// How many grants went to an attempt that had been made before and not answered.
pub(crate) fn recovered(history: &History) -> usize {
    let mut unanswered = HashSet::new();
    let mut found = 0;
    for operation in history.operations() {
        let Call::Acquire { attempt, .. } = &operation.call else { continue };
        match operation.reply() {
            None => _ = unanswered.insert(*attempt),
            Some((_, Answer::Granted { .. })) => found += usize::from(unanswered.remove(attempt)),
            Some(_) => {}
        }
    }
    found
}

/// The history with the lie in it, if it has a place for it.
pub(crate) fn falsify(history: History, lie: Lie) -> Option<History> {
    let (mut operations, evidence) = history.into_parts();
    let done = match lie {
        Lie::DuplicateToken => duplicate(&mut operations),
        Lie::SwapTokens => swap(&mut operations),
        Lie::TokenAtFloor => at_floor(&mut operations),
        Lie::LengthenWindow => lengthen(&mut operations),
        Lie::StaleSuccess => stale(&mut operations),
    };
    done.and_then(|()| History::new(operations, evidence).ok())
}

/// Pairs of grants on one key, the second begun after the first was answered.
fn in_turn(grants: &[Granted]) -> impl Iterator<Item = (&Granted, &Granted)> {
    grants.iter().flat_map(|first| {
        let later = grants.iter().filter(move |second| {
            second.key == first.key
                && second.attempt != first.attempt
                && second.invoked > first.returned
                && second.token > first.token
        });
        later.map(move |second| (first, second))
    })
}

fn tell_token(operation: &mut Operation, lie: Token) {
    if let Answer::Granted { token, .. } = &mut operation.answer {
        *token = lie;
    }
}

fn duplicate(operations: &mut [Operation]) -> Option<()> {
    let grants = granted(operations);
    let (first, second) = in_turn(&grants).nth(5)?;
    tell_token(&mut operations[second.at], first.token);
    Some(())
}

fn swap(operations: &mut [Operation]) -> Option<()> {
    let grants = granted(operations);
    let (first, second) = in_turn(&grants).nth(3)?;
    tell_token(&mut operations[first.at], second.token);
    tell_token(&mut operations[second.at], first.token);
    Some(())
}

fn at_floor(operations: &mut [Operation]) -> Option<()> {
    let grants = granted(operations);
    let (at, floor) = operations.iter().find_map(|operation| {
        let (replied, floor) = match operation.reply()? {
            (at, Answer::Revoked { floor, .. } | Answer::Free { floor }) => (at, *floor),
            _ => return None,
        };
        let key = operation.call.key()?;
        let later = grants.iter().find(|grant| grant.key == *key && grant.invoked > replied)?;
        Some((later.at, floor))
    })?;
    tell_token(&mut operations[at], floor);
    Some(())
}

/// Whether an operation could end a grant made for this attempt under this token.
fn may_end(operation: &Operation, grant: &Granted, operations: &[Operation]) -> bool {
    match &operation.call {
        Call::Release { key, token } => *key == grant.key && *token == grant.token,
        Call::Forget { attempt, .. } => *attempt == grant.attempt,
        Call::CloseSession { session } => matches!(
            &operations[grant.at].answer,
            Answer::Granted { session: own, .. } if own == session
        ),
        Call::Revoke { .. } | Call::RaiseFloor { .. } => true,
        _ => false,
    }
}

fn lengthen(operations: &mut [Operation]) -> Option<()> {
    let grants = granted(operations);
    let undisturbed = |grant: &Granted, until: Nanos| {
        let mut early = operations.iter().filter(|operation| operation.invoked <= until);
        !early.any(|operation| may_end(operation, grant, operations))
    };
    let (at, lie) = in_turn(&grants).find_map(|(first, second)| {
        let fits = second.returned < second.valid_until
            && undisturbed(first, second.returned)
            && undisturbed(second, second.returned);
        fits.then_some((first.at, Nanos(second.returned.0 + 1)))
    })?;
    if let Answer::Granted { valid_until, .. } = &mut operations[at].answer {
        *valid_until = lie;
    }
    Some(())
}

fn stale(operations: &mut [Operation]) -> Option<()> {
    let grants = granted(operations);
    let overtaken = |key: &Key, token: Token, invoked: Nanos| {
        grants
            .iter()
            .any(|grant| grant.key == *key && grant.token > token && grant.returned < invoked)
    };
    let place =
        operations.iter().position(|operation| match (&operation.call, &operation.answer) {
            (Call::Renew { key, token }, Answer::Lost)
            | (Call::Release { key, token }, Answer::Released(false)) => {
                overtaken(key, *token, operation.invoked)
            }
            (Call::KeepAlive { .. }, Answer::Kept { lost, .. }) => {
                lost.iter().any(|(key, token)| overtaken(key, *token, operation.invoked))
            }
            _ => false,
        })?;
    let operation = &mut operations[place];
    let valid_until = Nanos(operation.invoked.0 + 1);
    match &mut operation.answer {
        Answer::Kept { lost, .. } => lost.clear(),
        answer => {
            *answer = match operation.call {
                Call::Renew { .. } => Answer::Renewed { valid_until },
                _ => Answer::Released(true),
            }
        }
    }
    Some(())
}

/// Makes some deadlines later, by chance; whether windows then meet is not known.
pub(crate) fn stretch(history: History, seed: u64) -> Option<History> {
    let mut chance = Chance::new(!seed);
    let (mut operations, evidence) = history.into_parts();
    for _ in 0..8 {
        let place = chance.place(operations.len());
        if let Answer::Granted { valid_until, .. }
        | Answer::Renewed { valid_until }
        | Answer::Kept { valid_until, .. } = &mut operations[place].answer
        {
            valid_until.0 += chance.below(20_000);
        }
    }
    History::new(operations, evidence).ok()
}
