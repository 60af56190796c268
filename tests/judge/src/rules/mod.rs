//! The rules, one file each. A rule names its source, and its file holds planted
//! bad histories that it rejects beside legal look-alikes that it accepts.
//!
//! To add one: a file `jN_….rs` with a type that implements [`Rule`], its tests,
//! a line in [`all`], and one in the crate's map.

use std::fmt;

use crate::case::Case;
use crate::verdict::Findings;

pub mod j1_one_attempt;
pub mod j2_tokens_grow;
pub mod j3_windows;
pub mod j4_stale_tokens;

pub use j1_one_attempt::OneAttemptPerToken;
pub use j2_tokens_grow::TokensGrow;
pub use j3_windows::{EarlyExpiry, WindowsNeverMeet};
pub use j4_stale_tokens::StaleTokensFail;

/// A promise that can be checked on a history.
pub trait Rule: fmt::Debug + Sync {
    /// The name it is known by in the traps: `J1`, `J2`, …
    fn name(&self) -> &'static str;

    /// What it promises, in one sentence.
    fn promise(&self) -> &'static str;

    /// Looks for places where the promise was broken; at most n log n in the
    /// number of operations.
    fn check(&self, case: &Case<'_>, findings: &mut Findings<'_, '_>);
}

/// Every rule there is, for a store that does or does not declare early expiry.
pub fn all(early_expiry: EarlyExpiry) -> [&'static dyn Rule; 4] {
    let windows: &dyn Rule = match early_expiry {
        EarlyExpiry::Never => &WindowsNeverMeet { early_expiry: EarlyExpiry::Never },
        EarlyExpiry::Declared => &WindowsNeverMeet { early_expiry: EarlyExpiry::Declared },
    };
    [&OneAttemptPerToken, &TokensGrow, windows, &StaleTokensFail]
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{EarlyExpiry, Rule};
    use crate::history::History;
    use crate::operation::Operation;
    use crate::verdict::{Verdict, judge};

    /// The verdict of one rule alone.
    #[track_caller]
    pub(crate) fn verdict(rule: &dyn Rule, operations: Vec<Operation>) -> Verdict {
        judge(&History::new(operations, vec![]).unwrap(), &[rule])
    }

    /// Asserts that the rule finds exactly one violation, shown by these places.
    #[track_caller]
    pub(crate) fn rejects(rule: &dyn Rule, operations: Vec<Operation>, shown_by: &[usize]) {
        let verdict = verdict(rule, operations);
        let found: Vec<Vec<usize>> = verdict
            .of_rule(rule.name())
            .map(|violation| violation.operations.iter().map(|o| o.id.0).collect())
            .collect();
        assert_eq!(found, [shown_by], "{verdict}");
    }

    /// Asserts that the rule finds nothing.
    #[track_caller]
    pub(crate) fn accepts(rule: &dyn Rule, operations: Vec<Operation>) {
        let verdict = verdict(rule, operations);
        assert!(verdict.is_clean(), "{verdict}");
        assert!(verdict.counted.is_empty(), "{verdict}");
    }

    #[test]
    fn rules_have_names_of_their_own_and_say_what_they_promise() {
        let rules = super::all(EarlyExpiry::Never);
        let names: Vec<_> = rules.iter().map(|rule| rule.name()).collect();
        assert_eq!(names, ["J1", "J2", "J3", "J4"]);
        assert!(rules.iter().all(|rule| rule.promise().len() > 20));
    }
}
