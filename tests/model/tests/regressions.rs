//! Short sequences that naive stores fail, by hand, through the same judges as the random ones.
//!
//! Each is shown to be worth keeping: the memory store passes it, and a store with the planted bug
//! that it is about does not. What the search finds one day is added here in the same form.

use dlock_model::planted::{Bug, Planted};
use dlock_model::{
    AtLeast, Harness, Id, Judges, MemoryHarness, Op, Reply, Sess, Step, Tok, Who, run_case,
};
use dlock_ports::Intent;

const ANN: Who = Who::Private { owner: 0, ttl: 0 };

/// A step whose reply arrives.
fn then(op: Op) -> Step {
    Step { op, reply: Reply::Arrives }
}

/// A step whose reply is lost, and that is repeated.
fn lost(op: Op) -> Step {
    Step { op, reply: Reply::Lost }
}

fn open(slot: u8) -> Op {
    Op::Open { slot, owner: 0, ttl: 0, id: Id::Fresh }
}

fn take(who: Who, attempt: u8) -> Op {
    Op::Insert { key: 0, who, attempt, intent: Intent::Acquire }
}

fn advance(millis: u64) -> Op {
    Op::Advance { millis }
}

fn delete(age: u8) -> Op {
    Op::Delete { key: 0, token: Tok::Known(age) }
}

async fn passes_here_and_fails_with(bug: Bug, steps: &[Step]) {
    for judges in [Judges::Ledger, Judges::Reference] {
        let passed = run_case(&MemoryHarness { cases: 1 }, judges, steps).await;
        assert!(passed.is_ok(), "{passed:?}");
        let planted = Planted::new(bug, 1);
        let found = run_case(&planted, judges, steps).await;
        assert!(found.is_err(), "{} passed before {judges:?}", planted.name());
    }
}

/// The reply to an acquire is lost; the repeat must find the grant instead of waiting for itself.
#[tokio::test]
async fn inv02_a_repeat_after_a_lost_reply_finds_its_own_grant() {
    let steps = [then(open(0)), lost(take(Who::Slot(0), 0)), then(delete(0))];
    passes_here_and_fails_with(Bug::RepeatIsHeld, &steps).await;
}

/// The holder sleeps over the end of its lease, somebody else takes the lock, and the sleeper
/// releases what it believes is its own.
#[tokio::test]
async fn inv06_a_stale_release_leaves_the_successor_alone() {
    let steps = [then(take(ANN, 0)), then(advance(2_000)), then(take(ANN, 1)), then(delete(1))];
    passes_here_and_fails_with(Bug::DeleteIgnoresToken, &steps).await;
}

/// A keep-alive comes at the very moment at which the lease ends, and nobody has met the dead
/// session yet (C14).
#[tokio::test]
async fn c14_nothing_revives_a_session_at_the_end_of_its_lease() {
    let keep = Op::KeepAlive { session: Sess::Slot(0), held: vec![(0, Tok::Known(0))] };
    let steps = [
        then(open(0)),
        then(take(Who::Slot(0), 0)),
        then(advance(1_999)),
        then(keep.clone()),
        then(advance(2_000)),
        then(keep),
    ];
    passes_here_and_fails_with(Bug::KeepAliveRevives, &steps).await;
    passes_here_and_fails_with(Bug::ExpiryIsLate, &steps).await;
}

/// An acquire of unknown outcome is given up; a late duplicate of it must not be granted
/// (traps 12, 13).
#[tokio::test]
async fn a_late_duplicate_of_a_settled_attempt_is_refused() {
    let forget = Op::Forget { key: 0, who: Who::Slot(0), attempt: 0 };
    let steps = [
        then(open(0)),
        then(take(Who::Slot(0), 0)),
        lost(forget),
        then(take(Who::Slot(0), 0)),
        then(take(Who::Slot(0), 1)),
    ];
    passes_here_and_fails_with(Bug::ForgetLeavesNoMark, &steps).await;
}

/// Tokens rise over a release, an expiry, a revoke of a free lock and a raised floor.
#[tokio::test]
async fn inv04_tokens_rise_over_every_kind_of_end() {
    let steps = [
        then(take(ANN, 0)),
        lost(delete(0)),
        then(take(ANN, 1)),
        then(advance(2_000)),
        then(take(ANN, 2)),
        lost(Op::Revoke { key: 0, expected: Some(Tok::Known(0)) }),
        then(take(ANN, 3)),
        lost(Op::Raise { namespace: 0, at_least: AtLeast::Above }),
        then(take(ANN, 4)),
    ];
    passes_here_and_fails_with(Bug::TokenReused, &steps).await;
}
