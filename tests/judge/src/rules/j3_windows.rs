//! J3: safe windows of different grants on a key never meet.
//!
//! Source: the judge, J3; INV-01 and INV-03. What a safe window is, and what cuts
//! it, is said in [`crate::grant`].
//!
//! Exception: etcd itself can end a lease early after its leader was paused (trap
//! 4); then the old holder still trusts its deadline while a new grant is made,
//! and only fencing protects. Such a pair is *counted apart* as `early expiry`,
//! for stores that declare it, and only with evidence that the lease of the grant
//! with the smaller token was seen gone: after the last proof that it lived, and
//! before its window ended.
//!
//! Legal: two processes believe they hold the lock (one of them past its deadline);
//! a window that ends in the very moment another begins; acquires of unknown
//! outcome, which never count as held; late expiry.

use std::collections::HashMap;

use crate::case::Case;
use crate::grant::{Grant, Window};
use crate::history::Evidence;
use crate::ids::{Nanos, Session};
use crate::rules::Rule;
use crate::verdict::Findings;

/// The name under which proven early expiries are counted.
pub const EARLY_EXPIRY: &str = "early expiry";

/// Whether a store declares that it may end a confirmed lease before its time (trap 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyExpiry {
    /// It promises never to; evidence that it did excuses nothing.
    Never,
    /// It says so; with evidence, windows that meet are counted apart.
    Declared,
}

/// The rule J3.
#[derive(Clone, Copy, Debug)]
pub struct WindowsNeverMeet {
    /// What the store declares.
    pub early_expiry: EarlyExpiry,
}

impl Rule for WindowsNeverMeet {
    fn name(&self) -> &'static str {
        "J3"
    }

    fn promise(&self) -> &'static str {
        "safe windows of different grants on a key never meet"
    }

    fn check(&self, case: &Case<'_>, findings: &mut Findings<'_, '_>) {
        let gone = match self.early_expiry {
            EarlyExpiry::Never => HashMap::new(),
            EarlyExpiry::Declared => seen_gone(case),
        };
        let mut spans: Vec<(&Grant, Window)> = case
            .grants()
            .iter()
            .flat_map(|grant| grant.windows.iter().map(move |window| (grant, *window)))
            .collect();
        spans.sort_unstable_by_key(|(grant, window)| (grant.key, window.from, window.opened_by));
        // A grant's own windows are apart, so a window that begins before the
        // furthest end so far meets another grant's.
        let mut furthest: Option<(&Grant, Window)> = None;
        for span in spans {
            match furthest {
                Some(open) if open.0.key == span.0.key => {
                    if span.1.from < open.1.until {
                        met(case, &gone, open, span, findings);
                    }
                    if span.1.until > open.1.until {
                        furthest = Some(span);
                    }
                }
                _ => furthest = Some(span),
            }
        }
    }
}

/// When the leases of sessions were seen gone, in order.
fn seen_gone<'h>(case: &Case<'h>) -> HashMap<&'h Session, Vec<Nanos>> {
    let mut gone: HashMap<_, Vec<_>> = HashMap::new();
    for evidence in case.history().evidence() {
        let Evidence::EarlyExpiry { session, seen_gone } = evidence;
        gone.entry(session).or_default().push(*seen_gone);
    }
    gone.values_mut().for_each(|moments| moments.sort_unstable());
    gone
}

fn met(
    case: &Case<'_>,
    gone: &HashMap<&Session, Vec<Nanos>>,
    open: (&Grant, Window),
    span: (&Grant, Window),
    findings: &mut Findings<'_, '_>,
) {
    let key = Some(case.key(open.0.key));
    let shown_by = [
        open.0.acquire,
        open.1.opened_by,
        open.1.ended_by,
        span.0.acquire,
        span.1.opened_by,
        span.1.ended_by,
    ];
    let shared = open.1.until.min(span.1.until).0 - span.1.from.0;
    let explanation = format!(
        "the safe windows of {} and {} meet for {shared} ns, beginning with the reply {}",
        open.0.token, span.0.token, span.1.opened_by
    );
    let (elder, window) = if open.0.token <= span.0.token { open } else { span };
    let excused = gone.get(&elder.session).is_some_and(|moments| {
        let later = moments.partition_point(|at| *at < elder.proof);
        moments.get(later).is_some_and(|at| *at < window.until)
    });
    if excused {
        findings.exception(EARLY_EXPIRY, key, &shown_by, explanation);
    } else {
        findings.violation(key, &shown_by, explanation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::ids::Token;
    use crate::operation::{Answer, Call, Operation};
    use crate::rules::testing::{accepts, rejects};
    use crate::script::{
        acquire, acquired, forget, keep_alive, release, renewed, revoke, unanswered,
    };
    use crate::verdict::{Verdict, judge};

    const STRICT: WindowsNeverMeet = WindowsNeverMeet { early_expiry: EarlyExpiry::Never };
    const DECLARED: WindowsNeverMeet = WindowsNeverMeet { early_expiry: EarlyExpiry::Declared };

    #[test]
    fn rejects_windows_that_meet() {
        let operations = vec![acquired("k", 1, 5, 10..20, 90), acquired("k", 2, 6, 50..60, 140)];
        rejects(&STRICT, operations, &[0, 1]);
    }

    #[test]
    fn rejects_every_window_inside_a_longer_one() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 500),
            acquired("k", 2, 6, 30..40, 50),
            acquired("j", 3, 7, 10..20, 500),
            acquired("k", 4, 8, 100..110, 120),
            acquired("k", 5, 9, 500..510, 600),
        ];
        let verdict = judge(&History::new(operations, vec![]).unwrap(), &[&STRICT]);
        let found = verdict.violations.iter().map(|violation| {
            violation.operations.iter().map(|operation| operation.id.0).collect::<Vec<_>>()
        });
        assert_eq!(found.collect::<Vec<_>>(), [[0, 1], [0, 3]], "{verdict}");
    }

    #[test]
    fn rejects_a_window_that_a_renew_or_a_keep_alive_lengthened_too_far() {
        let renew = renewed("k", 5, 70..80, 150);
        let second = acquired("k", 2, 6, 110..120, 200);
        rejects(&STRICT, vec![acquired("k", 1, 5, 10..20, 90), renew, second], &[0, 1, 2]);
        let kept = keep_alive("s1", &[("k", 5)], 70..80, 150, &[]);
        let second = acquired("k", 2, 6, 110..120, 200);
        rejects(&STRICT, vec![acquired("k", 1, 5, 10..20, 90), kept, second], &[0, 1, 2]);
    }

    #[test]
    fn rejects_a_grant_made_while_another_was_held_though_it_is_later_called_lost() {
        let lost = Operation { answer: Answer::Lost, ..renewed("k", 5, 40..50, 0) };
        let operations =
            vec![acquired("k", 1, 5, 10..20, 90), lost, acquired("k", 2, 6, 60..70, 140)];
        rejects(&STRICT, operations, &[0, 2]);
    }

    #[test]
    fn rejects_two_live_tokens_for_one_attempt() {
        let operations = vec![acquired("k", 1, 5, 10..20, 90), acquired("k", 1, 6, 50..60, 140)];
        rejects(&STRICT, operations, &[0, 1]);
    }

    #[test]
    fn accepts_windows_that_touch_and_late_expiry() {
        accepts(&STRICT, vec![acquired("k", 1, 5, 10..20, 60), acquired("k", 2, 6, 50..60, 140)]);
        let late = vec![acquired("k", 1, 5, 10..20, 60), acquired("k", 2, 6, 5_000..5_010, 5_100)];
        accepts(&STRICT, late);
    }

    #[test]
    fn accepts_a_grant_after_a_release_of_any_certain_or_unknown_outcome() {
        let second = || acquired("k", 2, 6, 50..60, 140);
        let first = || acquired("k", 1, 5, 10..20, 90);
        accepts(&STRICT, vec![first(), release("k", 5, 30..40, true), second()]);
        let unknown = unanswered(30, release("k", 5, 30..40, true).call);
        accepts(&STRICT, vec![first(), unknown, second()]);
        accepts(&STRICT, vec![first(), forget("k", 1, 30..40), second()]);
        let failed = Operation { answer: Answer::Failed, ..release("k", 5, 30..40, true) };
        rejects(&STRICT, vec![first(), failed, second()], &[0, 2]);
    }

    #[test]
    fn accepts_a_grant_after_a_revoke_and_rejects_one_before_it() {
        let revoked =
            |times| revoke("k", times, Answer::Revoked { previous: Token(5), floor: Token(6) });
        let first = || acquired("k", 1, 5, 10..20, 90);
        let second = || acquired("k", 2, 7, 50..60, 140);
        accepts(&STRICT, vec![first(), revoked(40..45), second()]);
        rejects(&STRICT, vec![first(), second(), revoked(70..75)], &[0, 1, 2]);
    }

    #[test]
    fn accepts_that_a_stale_holder_believes() {
        // Its renew was answered only after its deadline, when another held the lock:
        // unknown, so its window ended at 90 and was never lengthened.
        let unknown = Operation { answer: Answer::Unknown, ..renewed("k", 5, 80..130, 180) };
        let operations =
            vec![acquired("k", 1, 5, 10..20, 90), unknown, acquired("k", 2, 6, 95..100, 190)];
        accepts(&STRICT, operations);
    }

    #[test]
    fn accepts_that_an_unknown_acquire_is_never_held() {
        let unknown = Operation { answer: Answer::Unknown, ..acquired("k", 1, 5, 10..20, 90) };
        let operations = vec![
            unknown,
            unanswered(15, acquire("k", 3)),
            acquired("k", 2, 6, 50..60, 140),
            unanswered(55, Call::Renew { key: crate::script::key("k"), token: Token(5) }),
        ];
        accepts(&STRICT, operations);
    }

    #[test]
    fn accepts_another_grant_in_the_hole_that_a_late_renew_left() {
        // A store that did this was wrong at some moment, yet no holder trusted a
        // deadline then: windows cannot show it, a search for a legal order can.
        let operations = vec![
            acquired("k", 1, 5, 10..20, 90),
            renewed("k", 5, 85..100, 165),
            acquired("k", 2, 6, 91..95, 98),
        ];
        accepts(&STRICT, operations);
    }

    /// Two windows that meet from 60 to 90, with a lease seen gone at some moment.
    fn early(rule: &WindowsNeverMeet, session: &str, seen_gone: u64) -> Verdict {
        let session = Session::new(session);
        let evidence = Evidence::EarlyExpiry { session, seen_gone: Nanos(seen_gone) };
        let operations = vec![
            acquired("k", 1, 5, 10..20, 70),
            renewed("k", 5, 30..40, 90),
            acquired("k", 2, 6, 50..60, 140),
        ];
        judge(&History::new(operations, vec![evidence]).unwrap(), &[rule])
    }

    #[test]
    fn counts_an_early_expiry_apart_if_declared_and_proven() {
        for seen_gone in [30, 45, 89] {
            let verdict = early(&DECLARED, "s1", seen_gone);
            assert!(verdict.is_clean(), "{verdict}");
            assert_eq!(verdict.times(EARLY_EXPIRY), 1);
            assert!(verdict.to_string().contains("counted apart: 1 x early expiry"), "{verdict}");
        }
    }

    #[test]
    fn rejects_an_early_expiry_that_the_store_does_not_declare() {
        let verdict = early(&STRICT, "s1", 45);
        assert_eq!((verdict.of_rule("J3").count(), verdict.times(EARLY_EXPIRY)), (1, 0));
    }

    #[test]
    fn rejects_an_early_expiry_without_evidence_that_proves_it() {
        // Before the renew that proves it lived; at its deadline; the wrong lease.
        for (session, seen_gone) in [("s1", 29), ("s1", 90), ("s2", 45), ("s3", 45)] {
            let verdict = early(&DECLARED, session, seen_gone);
            assert_eq!(verdict.of_rule("J3").count(), 1, "{session} {seen_gone}");
            assert_eq!(verdict.times(EARLY_EXPIRY), 0);
        }
    }
}
