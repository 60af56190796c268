//! J2: a grant whose operation returned before another acquire on that key began
//! has the smaller token; across crash, failover and restore.
//!
//! Source: the judge, J2; INV-04, which asks the same of every floor: a floor that
//! was answered before an acquire began is below its token. A token that was
//! released is over for good and counts like a floor, or the very attempt that
//! released it could be handed its dead grant again.
//!
//! Legal: gaps; a repeat that is answered its own grant's token; any order among
//! acquires that overlap; an acquire of unknown outcome, whose token nobody knows.

use crate::case::Case;
use crate::ids::{Attempt, OpId};
use crate::operation::{Answer, Call};
use crate::rules::Rule;
use crate::verdict::Findings;

/// The rule J2.
#[derive(Clone, Copy, Debug)]
pub struct TokensGrow;

impl Rule for TokensGrow {
    fn name(&self) -> &'static str {
        "J2"
    }

    fn promise(&self) -> &'static str {
        "a grant whose operation returned before another acquire on that key began has the \
         smaller token, and so has every floor"
    }

    fn check(&self, case: &Case<'_>, findings: &mut Findings<'_, '_>) {
        for operation in case.history().operations() {
            let Call::Acquire { key, attempt, .. } = &operation.call else { continue };
            let Some((_, Answer::Granted { token, .. })) = operation.reply() else { continue };
            let granted = case.granted_before(key, operation.invoked).filter(|(before, by)| {
                before > token || (before == token && attempt_of(case, *by) != Some(*attempt))
            });
            let over =
                case.over_before(key, operation.invoked).filter(|(before, _)| before >= token);
            if let Some((before, by)) = granted {
                let explanation = format!(
                    "{token} was granted by an acquire that began after {before} had been granted"
                );
                findings.violation(Some(key), &[by, operation.id], explanation);
            } else if let Some((before, by)) = over {
                let explanation = format!(
                    "{token} was granted by an acquire that began after everything up to \
                     {before} was over"
                );
                findings.violation(Some(key), &[by, operation.id], explanation);
            }
        }
    }
}

fn attempt_of(case: &Case<'_>, id: OpId) -> Option<Attempt> {
    match case.operation(id).call {
        Call::Acquire { attempt, .. } => Some(attempt),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Incarnation, Token};
    use crate::operation::Operation;
    use crate::rules::testing::{accepts, rejects};
    use crate::script::{acquire, acquired, raise, release, revoke, unanswered};

    #[test]
    fn rejects_a_smaller_token_granted_later() {
        let operations = vec![acquired("k", 1, 5, 10..20, 90), acquired("k", 2, 4, 200..210, 290)];
        rejects(&TokensGrow, operations, &[0, 1]);
    }

    #[test]
    fn rejects_it_across_a_restart_of_the_server() {
        let life = |epoch| Some(Incarnation { server: 0, epoch });
        let before = Operation { through: life(0), ..acquired("k", 1, 141, 10..20, 90) };
        let after = Operation { through: life(1), ..acquired("k", 2, 140, 200..210, 290) };
        rejects(&TokensGrow, vec![before, after], &[0, 1]);
    }

    #[test]
    fn rejects_the_same_token_for_another_attempt() {
        let operations = vec![acquired("k", 1, 5, 10..20, 90), acquired("k", 2, 5, 200..210, 290)];
        rejects(&TokensGrow, operations, &[0, 1]);
    }

    #[test]
    fn rejects_a_repeat_that_is_given_its_grant_after_a_later_one() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 90),
            acquired("k", 2, 6, 200..210, 290),
            acquired("k", 1, 5, 220..230, 290),
        ];
        rejects(&TokensGrow, operations, &[1, 2]);
    }

    #[test]
    fn rejects_a_token_at_or_below_a_floor_answered_before() {
        let revoked = || revoke("k", 30..40, Answer::Free { floor: Token(8) });
        rejects(&TokensGrow, vec![revoked(), acquired("k", 1, 8, 50..60, 140)], &[0, 1]);
        let raised = || raise("default", 30..40, 8);
        rejects(&TokensGrow, vec![raised(), acquired("k", 1, 7, 50..60, 140)], &[0, 1]);
        accepts(&TokensGrow, vec![revoked(), raised(), acquired("k", 1, 9, 50..60, 140)]);
        let elsewhere = revoke("j", 30..40, Answer::Free { floor: Token(8) });
        accepts(&TokensGrow, vec![elsewhere, acquired("k", 1, 7, 50..60, 140)]);
    }

    #[test]
    fn rejects_a_released_grant_that_comes_back_to_its_own_attempt() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 90),
            release("k", 5, 30..40, true),
            acquired("k", 1, 5, 50..60, 140),
        ];
        rejects(&TokensGrow, operations, &[1, 2]);
    }

    #[test]
    fn accepts_a_repeat_that_recognises_its_own_grant() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 90),
            acquired("k", 1, 5, 30..40, 90),
            release("k", 5, 50..60, true),
            acquired("k", 1, 9, 70..80, 150),
        ];
        accepts(&TokensGrow, operations);
    }

    #[test]
    fn accepts_any_order_among_acquires_that_overlap() {
        let operations = vec![acquired("k", 1, 5, 10..20, 15), acquired("k", 2, 4, 20..30, 290)];
        accepts(&TokensGrow, operations);
        let operations = vec![acquired("k", 1, 5, 10..90, 95), acquired("k", 2, 4, 20..30, 40)];
        accepts(&TokensGrow, operations);
    }

    #[test]
    fn accepts_gaps_and_other_keys() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 30),
            acquired("k", 2, 5_000, 40..50, 90),
            acquired("j", 3, 6, 100..110, 190),
        ];
        accepts(&TokensGrow, operations);
    }

    #[test]
    fn accepts_a_smaller_token_after_a_release_that_found_nothing() {
        let stray = release("k", 9, 10..20, false);
        accepts(&TokensGrow, vec![stray, acquired("k", 1, 5, 30..40, 90)]);
    }

    #[test]
    fn accepts_unknown_outcomes_before_and_after() {
        let unknown = Operation { answer: Answer::Unknown, ..acquired("k", 1, 9, 10..20, 90) };
        let unknown_release = unanswered(30, release("k", 9, 30..40, true).call);
        let operations = vec![
            unknown,
            unknown_release,
            acquired("k", 2, 5, 40..50, 90),
            unanswered(60, acquire("k", 3)),
        ];
        accepts(&TokensGrow, operations);
    }
}
