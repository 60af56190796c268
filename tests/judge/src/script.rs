//! Short words for writing histories down in tests. The process of an acquire is
//! its attempt, its session is named after it (`s1` for attempt 1).

use std::ops::Range;

use crate::history::History;
use crate::ids::{Attempt, Key, Nanos, OpId, ProcessId, Session, Token};
use crate::operation::{Answer, Call, Operation};

pub(crate) fn key(name: &str) -> Key {
    Key::named(name)
}

#[track_caller]
pub(crate) fn history(operations: Vec<Operation>) -> History {
    History::new(operations, vec![]).unwrap()
}

pub(crate) fn op(times: Range<u64>, call: Call, answer: Answer) -> Operation {
    let process = match &call {
        Call::Acquire { attempt: Attempt(number), .. } => u32::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    Operation {
        id: OpId(0),
        process: ProcessId(process),
        through: None,
        invoked: Nanos(times.start),
        returned: Some(Nanos(times.end)),
        call,
        answer,
    }
}

pub(crate) fn unanswered(invoked: u64, call: Call) -> Operation {
    Operation { returned: None, ..op(invoked..invoked, call, Answer::Unknown) }
}

pub(crate) fn acquire(name: &str, attempt: u128) -> Call {
    Call::Acquire { key: key(name), attempt: Attempt(attempt), session: None, ttl_ns: 100 }
}

pub(crate) fn acquired(
    name: &str,
    attempt: u128,
    token: u64,
    times: Range<u64>,
    until: u64,
) -> Operation {
    let session = Session::new(&format!("s{attempt}"));
    let answer = Answer::Granted { token: Token(token), session, valid_until: Nanos(until) };
    op(times, acquire(name, attempt), answer)
}

pub(crate) fn renewed(name: &str, token: u64, times: Range<u64>, until: u64) -> Operation {
    let call = Call::Renew { key: key(name), token: Token(token) };
    op(times, call, Answer::Renewed { valid_until: Nanos(until) })
}

pub(crate) fn release(name: &str, token: u64, times: Range<u64>, released: bool) -> Operation {
    let call = Call::Release { key: key(name), token: Token(token) };
    op(times, call, Answer::Released(released))
}

pub(crate) fn forget(name: &str, attempt: u128, times: Range<u64>) -> Operation {
    let call = Call::Forget { key: key(name), attempt: Attempt(attempt) };
    op(times, call, Answer::Released(true))
}

pub(crate) fn revoke(name: &str, times: Range<u64>, answer: Answer) -> Operation {
    op(times, Call::Revoke { key: key(name), expected: None }, answer)
}

pub(crate) fn raise(namespace: &str, times: Range<u64>, floor: u64) -> Operation {
    let call = Call::RaiseFloor { namespace: namespace.into(), at_least: Token(floor) };
    op(times, call, Answer::FloorRaised { floor: Token(floor), grants_ended: 1 })
}

pub(crate) fn keep_alive(
    session: &str,
    held: &[(&str, u64)],
    times: Range<u64>,
    until: u64,
    lost: &[(&str, u64)],
) -> Operation {
    let list = |entries: &[(&str, u64)]| -> Vec<_> {
        entries.iter().map(|(name, token)| (key(name), Token(*token))).collect()
    };
    let call = Call::KeepAlive { session: Session::new(session), held: list(held) };
    op(times, call, Answer::Kept { valid_until: Nanos(until), lost: list(lost) })
}
