//! The judge judged: histories of a correct lock, under crashes, lost replies and
//! operators, are accepted by every rule; each of them with one answer falsified
//! is rejected by the rule that the falsehood breaks.
//!
//! `simulate` is a small correct lock with clients that behave badly; `falsify`
//! tells one lie. A judge that accepted everything, or that never had anything to
//! look at, fails here.

mod chance;
mod falsify;
mod simulate;

use dlock_judge::grant::Window;
use dlock_judge::rules::{self, EarlyExpiry};
use dlock_judge::{Case, History, Verdict, judge};
use falsify::Lie;
use simulate::Setting;

fn verdict(history: &History) -> Verdict {
    judge(history, &rules::all(EarlyExpiry::Never))
}

#[test]
fn histories_of_a_correct_lock_are_accepted() {
    let (mut grants, mut windows, mut unknown) = (0, 0, 0);
    for seed in 0..300 {
        let verdict = verdict(&simulate::history(seed, Setting::small()));
        assert!(verdict.is_clean(), "seed {seed}: {verdict}");
        grants += verdict.seen.grants;
        windows += verdict.seen.windows;
        unknown += verdict.seen.unknown;
    }
    // Not vacuous: there was something to judge, and trouble to judge it through.
    assert!(grants > 10_000 && windows > 10_000, "{grants} grants, {windows} windows");
    assert!(unknown > 5_000, "{unknown} of unknown outcome");
}

#[test]
fn the_simulated_lock_meets_what_makes_judging_hard() {
    let (mut holes, mut lapsed, mut repeats, mut recovered) = (0, 0, 0, 0);
    for seed in 0..100 {
        let history = simulate::history(seed, Setting::small());
        let case = Case::new(&history);
        holes += case.grants().iter().filter(|grant| grant.windows.len() > 1).count();
        lapsed += case.grants().iter().filter(|grant| grant.windows.is_empty()).count();
        repeats += falsify::repeats(&history);
        recovered += falsify::recovered(&history);
    }
    assert!(holes > 20, "{holes} grants renewed after their deadline");
    assert!(lapsed > 50, "{lapsed} grants without any safe window");
    assert!(repeats > 50, "{repeats} repeats of an answered acquire");
    assert!(recovered > 50, "{recovered} grants found again after an unknown outcome");
}

#[test]
fn a_long_history_of_many_clients_is_accepted() {
    let history = simulate::history(7, Setting::large());
    let verdict = verdict(&history);
    assert!(verdict.is_clean(), "{verdict}");
    assert!(verdict.seen.operations >= 150_000, "{verdict}");
}

/// Tells the lie in many histories and wants the rule to see it in every one.
fn every_lie_is_seen(lie: Lie, rule: &str, setting: Setting) {
    let mut told = 0;
    for seed in 0..100 {
        let history = simulate::history(seed, setting);
        let Some(falsified) = falsify::falsify(history, lie) else { continue };
        told += 1;
        let verdict = verdict(&falsified);
        assert!(verdict.of_rule(rule).next().is_some(), "seed {seed}, {lie:?}: {verdict}");
    }
    assert!(told > 80, "{lie:?} could be told in {told} histories only");
}

#[test]
fn a_duplicated_token_breaks_j1() {
    every_lie_is_seen(Lie::DuplicateToken, "J1", Setting::small());
}

#[test]
fn swapped_tokens_break_j2() {
    every_lie_is_seen(Lie::SwapTokens, "J2", Setting::small());
}

#[test]
fn a_token_at_a_floor_breaks_j2() {
    every_lie_is_seen(Lie::TokenAtFloor, "J2", Setting::small());
}

#[test]
fn a_lengthened_window_breaks_j3() {
    // Unknown revokes and raises may have ended any grant: without them every
    // overlap is certain.
    every_lie_is_seen(Lie::LengthenWindow, "J3", Setting::small().without_operators());
}

#[test]
fn a_stale_success_breaks_j4() {
    every_lie_is_seen(Lie::StaleSuccess, "J4", Setting::small());
}

/// J3 as it would be written without any thought of speed.
fn some_windows_meet(history: &History) -> bool {
    let case = Case::new(history);
    let meet = |a: &Window, b: &Window| a.from < b.until && b.from < a.until;
    case.grants().iter().enumerate().any(|(place, grant)| {
        let others = case.grants()[..place].iter().filter(|other| other.key == grant.key);
        others
            .flat_map(|other| &other.windows)
            .any(|theirs| grant.windows.iter().any(|ours| meet(ours, theirs)))
    })
}

#[test]
fn the_sweep_over_windows_sees_what_comparing_every_pair_sees() {
    let (mut met, mut apart) = (0, 0);
    for seed in 0..200 {
        let history = simulate::history(seed, Setting::small());
        let history = falsify::stretch(history, seed).unwrap();
        let meet = some_windows_meet(&history);
        let seen = verdict(&history).of_rule("J3").next().is_some();
        assert_eq!(seen, meet, "seed {seed}");
        *(if meet { &mut met } else { &mut apart }) += 1;
    }
    assert!(met > 20 && apart > 20, "{met} met, {apart} apart");
}
