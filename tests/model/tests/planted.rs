//! The judges see: each planted bug is found by each of them, within the default number of cases.

use dlock_model::planted::{Bug, Planted};
use dlock_model::{Judges, search};

/// The default number of cases of the searches over the memory store.
const CASES: u32 = 400;

/// What the ledger says of each bug: that it found this one, and not a flaw of the decorator.
const WORDS: [(Bug, &str); 20] = [
    (Bug::RepeatIsHeld, "did not find its own grant: Held"),
    (Bug::AttemptIsAnybodys, "another's attempt answered Granted"),
    (Bug::RecoverGrants, "recovering nothing answered Granted"),
    (Bug::TokenReused, "INV-04: token"),
    (Bug::DeleteIgnoresToken, "INV-06: delete_if_owner: must be false"),
    (Bug::ExtendIgnoresToken, "INV-06: extend: must be false"),
    (Bug::KeepAliveRevives, "keep_alive finds the session: must be false"),
    (Bug::KeepAliveSeesNoLoss, "keep_alive's lost grants"),
    (Bug::LookExtends, "INV-03"),
    (Bug::CloseFreesNothing, "must be false, was true"),
    (Bug::ForgetLeavesNoMark, "a settled attempt's insert answered Granted"),
    (Bug::RevokeIgnoresExpected, "revoke: must be Mismatch"),
    (Bug::RevokeRaisesNoFloor, "INV-04: floor"),
    (Bug::RaiseEndsNothing, "grants ended by a raised floor"),
    (Bug::PrivateOutlivesLock, "finds the session: must be false"),
    (Bug::ListIgnoresPrefix, "list: must be"),
    (Bug::ReapTakesTheLiving, "must be true, was false"),
    (Bug::ExpiryIsLate, "list: must be []"),
    (Bug::NoMargin, "INV-03"),
    (Bug::LateCallsAreMade, "past its deadline it answered"),
];

#[test]
fn the_ledger_finds_every_planted_bug_and_calls_it_by_its_name() {
    let named: Vec<Bug> = WORDS.iter().map(|(bug, _)| *bug).collect();
    assert_eq!(named, Bug::ALL);
    for (bug, words) in WORDS {
        match search(&Planted::new(bug, CASES), Judges::Ledger, 1) {
            Ok(seen) => panic!("{bug:?} was not found: {seen:#?}"),
            Err(failure) => assert!(failure.why.contains(words), "{words:?} is not in {failure}"),
        }
    }
}

#[test]
fn the_comparison_with_the_reference_finds_every_planted_bug() {
    let missed: Vec<Bug> = Bug::ALL
        .into_iter()
        .filter(|bug| search(&Planted::new(*bug, CASES), Judges::Reference, 1).is_ok())
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
