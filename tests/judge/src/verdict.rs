//! The verdict: what the rules found, kept within a bound, told to a person.

use std::collections::BTreeMap;
use std::fmt;

use crate::case::Case;
use crate::grant::Grant;
use crate::history::History;
use crate::ids::{Key, Nanos, OpId, Token};
use crate::operation::{Answer, Call, Operation};
use crate::rules::Rule;

/// How many violations of one rule are kept whole; further ones are only counted,
/// since a broken store breaks a rule as often as it is asked.
pub const KEPT_PER_RULE: usize = 100;

/// How many violations of a verdict are printed.
const PRINTED: usize = 10;

/// One broken promise, with the fewest operations that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name: `J1`, `J2`, …
    pub rule: &'static str,
    /// The lock it is about, if it is about one.
    pub key: Option<Key>,
    /// The operations that show it, in order of invocation.
    pub operations: Vec<Operation>,
    /// What is wrong, in plain words.
    pub explanation: String,
}

/// Something that would be a violation, were it not declared and proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How often it was met.
    pub times: u64,
    /// The first one met.
    pub first: Violation,
}

/// How much there was to judge. A clean verdict over nothing proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Operations of any kind.
    pub operations: u64,
    /// Operations of unknown outcome.
    pub unknown: u64,
    /// Distinct grants that acquires were answered with.
    pub grants: u64,
    /// Safe windows of those grants that are not empty.
    pub windows: u64,
    /// Grants whose windows end early only because a revoke or floor raise of
    /// unknown outcome *may* have ended them: J3 is blind beyond. A run that means
    /// to show something keeps this number small beside `grants`.
    pub doubted: u64,
}

/// What was found in a history.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Broken promises, rule by rule, at most [`KEPT_PER_RULE`] of each.
    pub violations: Vec<Violation>,
    /// Violations beyond those kept, by rule.
    pub withheld: BTreeMap<&'static str, u64>,
    /// Declared and proven exceptions, by name (`early expiry`).
    pub counted: BTreeMap<&'static str, Counted>,
    /// How much was judged.
    pub seen: Seen,
}

/// Judges a history by some rules.
pub fn judge(history: &History, rules: &[&dyn Rule]) -> Verdict {
    let case = Case::new(history);
    let mut verdict = Verdict { seen: seen(&case), ..Verdict::default() };
    for rule in rules {
        let mut findings =
            Findings { case: &case, rule: rule.name(), kept: 0, verdict: &mut verdict };
        rule.check(&case, &mut findings);
    }
    verdict
}

fn seen(case: &Case<'_>) -> Seen {
    let operations = case.history().operations();
    let count = |n: usize| n as u64;
    Seen {
        operations: count(operations.len()),
        unknown: count(operations.iter().filter(|operation| operation.reply().is_none()).count()),
        grants: count(case.grants().len()),
        windows: case.grants().iter().map(|grant| count(grant.windows.len())).sum(),
        doubted: count(case.grants().iter().filter(|grant| doubted(case, grant)).count()),
    }
}

fn doubted(case: &Case<'_>, grant: &Grant) -> bool {
    grant.cut_by.map(|by| case.operation(by)).is_some_and(|cut| {
        let outside = matches!(cut.call, Call::Revoke { .. } | Call::RaiseFloor { .. });
        outside && cut.reply().is_none()
    })
}

/// Where a rule puts what it finds.
#[derive(Debug)]
pub struct Findings<'a, 'h> {
    case: &'a Case<'h>,
    rule: &'static str,
    kept: usize,
    verdict: &'a mut Verdict,
}

impl Findings<'_, '_> {
    /// Accuses: the operations named show that the rule is broken.
    pub fn violation(&mut self, key: Option<&Key>, shown_by: &[OpId], explanation: String) {
        if self.kept < KEPT_PER_RULE {
            self.kept += 1;
            let violation = self.tell(key, shown_by, explanation);
            self.verdict.violations.push(violation);
        } else {
            *self.verdict.withheld.entry(self.rule).or_default() += 1;
        }
    }

    /// Counts apart, under `name`, what is declared to be possible and proven to
    /// have happened.
    pub fn exception(
        &mut self,
        name: &'static str,
        key: Option<&Key>,
        shown_by: &[OpId],
        explanation: String,
    ) {
        if let Some(known) = self.verdict.counted.get_mut(name) {
            known.times += 1;
        } else {
            let first = self.tell(key, shown_by, explanation);
            self.verdict.counted.insert(name, Counted { times: 1, first });
        }
    }

    fn tell(&self, key: Option<&Key>, shown_by: &[OpId], explanation: String) -> Violation {
        let mut ids = shown_by.to_vec();
        ids.sort_unstable_by_key(|id| (self.case.operation(*id).invoked, *id));
        ids.dedup();
        let operations = ids.into_iter().map(|id| self.case.operation(id).clone()).collect();
        Violation { rule: self.rule, key: key.cloned(), operations, explanation }
    }
}

impl Verdict {
    /// Whether nothing was broken; exceptions that were counted apart don't matter.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.withheld.is_empty()
    }

    /// The violations of one rule that were kept.
    pub fn of_rule(&self, rule: &str) -> impl Iterator<Item = &Violation> {
        self.violations.iter().filter(move |violation| violation.rule == rule)
    }

    /// How often an exception was met.
    pub fn times(&self, exception: &str) -> u64 {
        self.counted.get(exception).map_or(0, |counted| counted.times)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seen { operations, unknown, grants, windows, doubted } = self.seen;
        let withheld: u64 = self.withheld.values().sum();
        let found = self.violations.len() as u64 + withheld;
        writeln!(
            f,
            "violations: {found}; judged: {operations} operations ({unknown} of unknown outcome), \
             {grants} grants ({doubted} doubted), {windows} safe windows"
        )?;
        for (name, counted) in &self.counted {
            writeln!(
                f,
                "counted apart: {} x {name}, the first:\n{}",
                counted.times, counted.first
            )?;
        }
        for violation in self.violations.iter().take(PRINTED) {
            writeln!(f, "{violation}")?;
        }
        if found > PRINTED as u64 {
            writeln!(f, "and {} more", found - PRINTED as u64)?;
        }
        Ok(())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        if let Some(key) = &self.key {
            write!(f, " on {key}")?;
        }
        let origin = self.operations.first().map_or(Nanos(0), |first| first.invoked);
        write!(f, ": {} (times in ms after {} ns)", self.explanation, origin.0)?;
        for operation in &self.operations {
            write!(f, "\n  {}", Told { operation, origin, key: self.key.as_ref() })?;
        }
        Ok(())
    }
}

/// An operation as a person reads it, its times counted from `origin`.
struct Told<'a> {
    operation: &'a Operation,
    origin: Nanos,
    key: Option<&'a Key>,
}

/// A moment in milliseconds from an origin.
struct Since(Nanos, Nanos);

impl fmt::Display for Since {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(moment, origin) = *self;
        let sign = if moment < origin { '-' } else { '+' };
        let distance = moment.0.abs_diff(origin.0);
        write!(f, "{sign}{}.{:06}", distance / 1_000_000, distance % 1_000_000)
    }
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { id, process, through, invoked, returned, .. } = self.operation;
        write!(f, "{id} [{} .. ", Since(*invoked, self.origin))?;
        match returned {
            Some(at) => write!(f, "{}]", Since(*at, self.origin))?,
            None => f.write_str("no answer]")?,
        }
        write!(f, " {process}")?;
        if let Some(through) = through {
            write!(f, " through {through}")?;
        }
        f.write_str(": ")?;
        self.call(f)?;
        f.write_str(" -> ")?;
        self.answer(f)
    }
}

impl Told<'_> {
    fn call(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation.call {
            Call::Acquire { key, attempt, .. } => write!(f, "acquire {key} for {attempt}"),
            Call::Renew { key, token } => write!(f, "renew {key} {token}"),
            Call::KeepAlive { session, held } => {
                write!(f, "keep {session} alive with {} grants", held.len())?;
                self.entries(f, held)
            }
            Call::Release { key, token } => write!(f, "release {key} {token}"),
            Call::Forget { key, attempt } => write!(f, "forget {key} {attempt}"),
            Call::Revoke { key, expected: None } => write!(f, "revoke {key}"),
            Call::Revoke { key, expected: Some(token) } => write!(f, "revoke {key} if {token}"),
            Call::RaiseFloor { namespace, at_least } => {
                write!(f, "raise floor of {namespace} to at least {}", at_least.0)
            }
            Call::CloseSession { session } => write!(f, "close {session}"),
            Call::Inspect { key } => write!(f, "inspect {key}"),
        }
    }

    fn answer(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = |moment: &Nanos| Since(*moment, self.origin);
        match &self.operation.answer {
            Answer::Granted { token, valid_until, .. } => {
                write!(f, "granted {token}, valid until {}", until(valid_until))
            }
            Answer::NotGranted => f.write_str("not granted"),
            Answer::Renewed { valid_until } => {
                write!(f, "renewed, valid until {}", until(valid_until))
            }
            Answer::Kept { valid_until, lost } => {
                write!(f, "kept, valid until {}, {} lost", until(valid_until), lost.len())?;
                self.entries(f, lost)
            }
            Answer::Lost => f.write_str("lost"),
            Answer::Released(true) => f.write_str("released"),
            Answer::Released(false) => f.write_str("not there to release"),
            Answer::Revoked { previous, floor } => {
                write!(f, "revoked {previous}, floor {}", floor.0)
            }
            Answer::Free { floor } => write!(f, "was free, floor {}", floor.0),
            Answer::Mismatch { current: None } => f.write_str("mismatch, free"),
            Answer::Mismatch { current: Some(token) } => write!(f, "mismatch, {token} is there"),
            Answer::FloorRaised { floor, grants_ended } => {
                write!(f, "floor {}, {grants_ended} grants ended", floor.0)
            }
            Answer::Closed(true) => f.write_str("closed"),
            Answer::Closed(false) => f.write_str("was not there"),
            Answer::Info(None) => f.write_str("free"),
            Answer::Info(Some(token)) => write!(f, "held with {token}"),
            Answer::Failed => f.write_str("failed, no effect"),
            Answer::Unknown => f.write_str("unknown"),
        }
    }

    /// Those entries of a list that the violation is about.
    fn entries(&self, f: &mut fmt::Formatter<'_>, list: &[(Key, Token)]) -> fmt::Result {
        for (key, token) in list.iter().filter(|(key, _)| Some(key) == self.key) {
            write!(f, ", {key} {token}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{self, EarlyExpiry};
    use crate::script::{acquired, history, keep_alive, unanswered};

    #[test]
    fn a_violation_is_told_with_times_from_its_first_operation() {
        let operations = vec![
            acquired("k", 1, 5, 1_000_000..1_500_000, 9_000_000),
            acquired("j", 3, 7, 1_000_000..1_500_000, 9_000_000),
            acquired("k", 2, 5, 10_000_000..11_000_000, 20_000_000),
        ];
        let verdict = judge(&history(operations), &[rules::all(EarlyExpiry::Never)[0]]);
        assert_eq!(
            verdict.to_string(),
            "violations: 1; judged: 3 operations (0 of unknown outcome), 3 grants (0 doubted), \
             3 safe windows\n\
             J1 on default:\"k\": token 5 went to attempt 1 and to attempt 2 \
             (times in ms after 1000000 ns)\n  \
             #0 [+0.000000 .. +0.500000] client 1: acquire default:\"k\" for attempt 1 \
             -> granted token 5, valid until +8.000000\n  \
             #2 [+9.000000 .. +10.000000] client 2: acquire default:\"k\" for attempt 2 \
             -> granted token 5, valid until +19.000000\n"
        );
    }

    #[test]
    fn a_long_keep_alive_is_told_by_what_matters() {
        let kept = keep_alive("s1", &[("j", 1), ("k", 5), ("l", 9)], 10..20, 90, &[]);
        let key = crate::script::key("k");
        let told = Told { operation: &kept, origin: Nanos(20), key: Some(&key) };
        assert_eq!(
            told.to_string(),
            "#0 [-0.000010 .. +0.000000] client 0: keep session s1 alive with 3 grants, \
             default:\"k\" token 5 -> kept, valid until +0.000070, 0 lost"
        );
    }

    #[test]
    fn a_store_that_breaks_a_rule_all_the_time_fills_no_memory() {
        let many = KEPT_PER_RULE as u64 + 30;
        let operations = (0..=many)
            .map(|n| acquired("k", u128::from(n), 5, n * 100..n * 100 + 10, n * 100 + 20))
            .collect();
        let verdict = judge(&history(operations), &[rules::all(EarlyExpiry::Never)[0]]);
        assert!(!verdict.is_clean());
        assert_eq!(verdict.of_rule("J1").count(), KEPT_PER_RULE);
        assert_eq!(verdict.withheld["J1"], 30);
        assert!(verdict.to_string().ends_with("and 120 more\n"), "{verdict}");
    }

    #[test]
    fn grants_that_an_unknown_revoke_may_have_ended_are_counted_as_doubted() {
        let first = acquired("k", 1, 5, 10..20, 90);
        let key = crate::script::key("k");
        let revoke = unanswered(30, Call::Revoke { key, expected: None });
        let second = acquired("k", 2, 6, 50..60, 140);
        let verdict = judge(&history(vec![first, revoke, second]), &[]);
        assert_eq!((verdict.seen.grants, verdict.seen.windows, verdict.seen.doubted), (2, 1, 2));
    }

    #[test]
    fn an_empty_history_is_clean_and_says_that_nothing_was_seen() {
        let verdict = judge(&history(vec![]), &rules::all(EarlyExpiry::Never));
        assert!(verdict.is_clean());
        assert_eq!(verdict.seen, Seen::default());
    }
}
