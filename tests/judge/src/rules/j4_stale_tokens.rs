//! J4: a lock operation invoked after a later grant's reply never succeeds with
//! the earlier token.
//!
//! Source: the judge, J4; INV-06 (a stale holder can neither extend nor delete
//! anything). *Operations* are renew, release, and each grant that a keep-alive
//! lists and does not report lost. By the same invariant, and because a floor
//! admits only greater tokens, a floor that was answered makes every token up to
//! it stale, and a release that removed a grant makes its token stale.
//!
//! Legal: such an operation that was under way before the reply; one that is
//! answered lost or `false`, fails, or stays unknown; a *newer* token; a stale
//! holder's belief.

use crate::case::Case;
use crate::ids::{Key, Token};
use crate::operation::{Answer, Call, Operation};
use crate::rules::Rule;
use crate::verdict::Findings;

/// The rule J4.
#[derive(Clone, Copy, Debug)]
pub struct StaleTokensFail;

impl Rule for StaleTokensFail {
    fn name(&self) -> &'static str {
        "J4"
    }

    fn promise(&self) -> &'static str {
        "a lock operation invoked after a later grant's reply never succeeds with the earlier \
         token"
    }

    fn check(&self, case: &Case<'_>, findings: &mut Findings<'_, '_>) {
        for operation in case.history().operations() {
            if let Some((_, seen_live)) = operation.confirmed() {
                for (key, token) in seen_live {
                    check_one(case, operation, key, token, findings);
                }
            }
            if let Call::Release { key, token } = &operation.call
                && let Some((_, Answer::Released(true))) = operation.reply()
            {
                check_one(case, operation, key, *token, findings);
            }
        }
    }
}

fn check_one(
    case: &Case<'_>,
    operation: &Operation,
    key: &Key,
    token: Token,
    findings: &mut Findings<'_, '_>,
) {
    let granted = case.granted_before(key, operation.invoked).filter(|(before, _)| *before > token);
    let over = case.over_before(key, operation.invoked).filter(|(before, _)| *before >= token);
    if let Some((before, by)) = granted {
        let explanation = format!(
            "an operation with {token} began after {before} had been granted, and succeeded"
        );
        findings.violation(Some(key), &[by, operation.id], explanation);
    } else if let Some((before, by)) = over {
        let explanation = format!(
            "an operation with {token} began after everything up to {before} was over, and \
             succeeded"
        );
        findings.violation(Some(key), &[by, operation.id], explanation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{accepts, rejects};
    use crate::script::{acquired, keep_alive, raise, release, renewed, revoke, unanswered};

    /// Token 5 is granted, then 6, whose reply comes at 110.
    fn after_a_later_grant(operation: Operation) -> Vec<Operation> {
        vec![acquired("k", 1, 5, 10..20, 90), acquired("k", 2, 6, 100..110, 190), operation]
    }

    #[test]
    fn rejects_a_stale_renew_that_succeeds() {
        rejects(&StaleTokensFail, after_a_later_grant(renewed("k", 5, 120..130, 200)), &[1, 2]);
    }

    #[test]
    fn rejects_a_stale_release_that_succeeds() {
        rejects(&StaleTokensFail, after_a_later_grant(release("k", 5, 120..130, true)), &[1, 2]);
    }

    #[test]
    fn rejects_a_keep_alive_that_does_not_see_a_grant_lost() {
        let kept = keep_alive("s1", &[("j", 9), ("k", 5)], 120..130, 200, &[]);
        rejects(&StaleTokensFail, after_a_later_grant(kept), &[1, 2]);
    }

    #[test]
    fn rejects_what_succeeds_at_or_below_a_floor() {
        let revoked = revoke("k", 30..40, Answer::Revoked { previous: Token(5), floor: Token(5) });
        let renew = renewed("k", 5, 50..60, 140);
        rejects(&StaleTokensFail, vec![acquired("k", 1, 5, 10..20, 90), revoked, renew], &[1, 2]);
        let renew = renewed("k", 5, 50..60, 140);
        let raised = raise("default", 30..40, 8);
        rejects(&StaleTokensFail, vec![acquired("k", 1, 5, 10..20, 90), raised, renew], &[1, 2]);
    }

    #[test]
    fn rejects_a_second_release_that_also_claims_to_have_removed_the_grant() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 90),
            release("k", 5, 30..40, true),
            release("k", 5, 50..60, true),
        ];
        rejects(&StaleTokensFail, operations, &[1, 2]);
    }

    #[test]
    fn accepts_stale_operations_that_are_told_the_truth() {
        let lost = Operation { answer: Answer::Lost, ..renewed("k", 5, 120..130, 0) };
        accepts(&StaleTokensFail, after_a_later_grant(lost));
        accepts(&StaleTokensFail, after_a_later_grant(release("k", 5, 120..130, false)));
        let kept = keep_alive("s1", &[("k", 5)], 120..130, 200, &[("k", 5)]);
        accepts(&StaleTokensFail, after_a_later_grant(kept));
    }

    #[test]
    fn accepts_stale_operations_that_fail_or_stay_unknown() {
        let stale = || renewed("k", 5, 120..130, 0);
        let failed = Operation { answer: Answer::Failed, ..stale() };
        accepts(&StaleTokensFail, after_a_later_grant(failed));
        accepts(&StaleTokensFail, after_a_later_grant(unanswered(120, stale().call)));
    }

    #[test]
    fn accepts_an_operation_under_way_before_the_later_grants_reply() {
        accepts(&StaleTokensFail, after_a_later_grant(release("k", 5, 110..120, true)));
        accepts(&StaleTokensFail, after_a_later_grant(renewed("k", 5, 80..200, 170)));
    }

    #[test]
    fn accepts_the_newest_token_and_other_keys() {
        accepts(&StaleTokensFail, after_a_later_grant(renewed("k", 6, 120..130, 220)));
        accepts(&StaleTokensFail, after_a_later_grant(renewed("j", 5, 120..130, 220)));
    }
}
