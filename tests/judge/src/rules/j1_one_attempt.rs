//! J1: one (key, token) never goes to two attempts.
//!
//! Source: the judge, J1; INV-02 (a token is captured from the reply of the one
//! operation that granted) and its sole exception, a repeated attempt that
//! recognises its own grant.
//!
//! Legal: the same attempt is answered the same token more than once; the same
//! attempt is given another token after its grant ended (that is a new grant, and
//! J2 wants its token greater); one token on two keys, since a store may grant
//! many locks in one commit.

use std::collections::HashMap;

use crate::case::Case;
use crate::rules::Rule;
use crate::verdict::Findings;

/// The rule J1.
#[derive(Clone, Copy, Debug)]
pub struct OneAttemptPerToken;

impl Rule for OneAttemptPerToken {
    fn name(&self) -> &'static str {
        "J1"
    }

    fn promise(&self) -> &'static str {
        "one (key, token) never goes to two attempts"
    }

    fn check(&self, case: &Case<'_>, findings: &mut Findings<'_, '_>) {
        // Grants are apart by (key, token, attempt): two with the same key and
        // token have different attempts.
        let mut first = HashMap::new();
        for grant in case.grants() {
            let owner = *first.entry((grant.key, grant.token)).or_insert(grant);
            if owner.attempt != grant.attempt {
                let explanation =
                    format!("{} went to {} and to {}", grant.token, owner.attempt, grant.attempt);
                let shown_by = [owner.acquire, grant.acquire];
                findings.violation(Some(case.key(grant.key)), &shown_by, explanation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Answer, Operation};
    use crate::rules::testing::{accepts, rejects};
    use crate::script::{acquire, acquired, release, unanswered};

    #[test]
    fn rejects_a_token_given_to_two_attempts() {
        let operations = vec![acquired("k", 1, 5, 10..20, 90), acquired("k", 2, 5, 200..210, 290)];
        rejects(&OneAttemptPerToken, operations, &[0, 1]);
    }

    #[test]
    fn rejects_it_also_when_the_two_overlap_and_the_first_was_released() {
        let operations = vec![
            acquired("k", 1, 5, 10..40, 110),
            acquired("k", 2, 5, 15..30, 115),
            release("k", 5, 50..60, true),
        ];
        rejects(&OneAttemptPerToken, operations, &[0, 1]);
    }

    #[test]
    fn accepts_a_repeat_that_recognises_its_own_grant() {
        let lost = unanswered(5, acquire("k", 1));
        let operations =
            vec![lost, acquired("k", 1, 5, 10..20, 90), acquired("k", 1, 5, 30..40, 90)];
        accepts(&OneAttemptPerToken, operations);
    }

    #[test]
    fn accepts_a_new_token_for_an_attempt_whose_grant_ended() {
        let operations = vec![
            acquired("k", 1, 5, 10..20, 90),
            release("k", 5, 30..40, true),
            acquired("k", 1, 6, 50..60, 140),
        ];
        accepts(&OneAttemptPerToken, operations);
    }

    #[test]
    fn accepts_one_token_on_two_keys() {
        let operations = vec![acquired("j", 1, 5, 10..20, 90), acquired("k", 2, 5, 10..20, 90)];
        accepts(&OneAttemptPerToken, operations);
    }

    #[test]
    fn accepts_a_second_attempt_that_was_not_told_a_token() {
        let unknown = Operation { answer: Answer::Unknown, ..acquired("k", 2, 5, 15..30, 115) };
        accepts(&OneAttemptPerToken, vec![acquired("k", 1, 5, 10..20, 90), unknown]);
    }
}
