//! The verb that only checks: every rule on the whole checkout, all findings at once.

use crate::finding::Finding;
use crate::house::House;
use crate::rules::RULES;

/// What all rules find, sorted by rule, file and line; the same trouble twice on a
/// line is one finding.
#[must_use]
pub fn findings(house: &House) -> Vec<Finding> {
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| (rule.check)(house)).collect();
    findings.sort();
    findings.dedup();
    findings
}

/// Reads the workspace, prints every finding and their number; whether there is none.
///
/// # Errors
/// If the workspace cannot be read.
pub fn run() -> anyhow::Result<bool> {
    let house = House::load()?;
    let findings = findings(&house);
    for finding in &findings {
        crate::say::line(format_args!("{finding}"));
    }
    crate::say::line(format_args!(
        "verify: {} rules, {} files, findings: {}",
        RULES.len(),
        house.files.len(),
        findings.len()
    ));
    Ok(findings.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn one_rule_that_finds_something_does_not_hide_another() {
        let unfinished = concat!("fn f() { to", "do!() }\n");
        let house = testing::house(&[
            ("domain/src/a.rs", "struct Watch;\n"),
            ("domain/src/b.rs", unfinished),
            ("adapters/x/src/c.rs", "fn f() { sql_query(\"DELETE FROM grants\"); }\n"),
        ]);
        let rules: Vec<_> = findings(&house).iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["deletes", "papers", "seams", "unfinished"]);
    }
}
