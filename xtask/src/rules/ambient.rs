//! Time and chance come through ports. Clippy bans asking the system for them; this rule says who
//! may lift that ban.

use crate::finding::Finding;
use crate::house::House;
use crate::{grep, lex, rules};

/// The name findings carry.
pub const RULE: &str = "ambient";

/// The two places where the ports are answered by the system, tests of real processes, and the
/// seconds this tool shows.
const ALLOWED: &[&str] =
    &["app/src/clock.rs", "app/src/entropy.rs", "tests/", "xtask/src/stopwatch.rs"];

/// The lint whose lifting is looked for.
const LINT: &str = "clippy::disallowed_methods";

/// Finds every attribute that lifts the ban elsewhere, whether it expects or allows.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in house.rust().filter(|file| !rules::listed(&file.path, ALLOWED)) {
        let code = lex::views(&file.text).code;
        findings.extend(grep::find_words(&code, LINT).into_iter().map(|at| {
            let what = "the ban on ambient time and chance is lifted here";
            file.finding(RULE, at, what, "take a Clock or an Entropy as an argument")
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    const LIFTED: &str =
        "#[expect(\n    clippy::disallowed_methods,\n    reason = \"x\"\n)]\nfn f() {}\n";

    #[test]
    fn lifting_the_ban_in_a_service_is_found() {
        let house = house(&[
            ("app/src/service.rs", LIFTED),
            ("domain/src/a.rs", "#![allow(clippy::disallowed_methods)]\n"),
        ]);
        assert_eq!(places(&check(&house)), ["app/src/service.rs:2", "domain/src/a.rs:1"]);
    }

    #[test]
    fn the_clock_the_entropy_and_tests_pass() {
        let house = house(&[
            ("app/src/clock.rs", LIFTED),
            ("app/src/entropy.rs", LIFTED),
            ("tests/e2e/tests/a.rs", LIFTED),
            ("app/src/service.rs", "// clippy::disallowed_methods stays on\n"),
        ]);
        assert_eq!(check(&house), []);
    }
}
