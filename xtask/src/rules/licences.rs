//! Everything that is built in can be shipped under a licence from the list.

use crate::finding::Finding;
use crate::house::House;
use crate::spdx;

/// The name findings carry.
pub const RULE: &str = "licences";

/// Licences that ask for no more than a notice, or for the source of the files changed.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "OpenSSL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Finds every resolved package whose licence expression cannot be met from the list.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &house.graph.resolved {
        let trouble = match package.licence.as_deref() {
            None => "declares no licence".into(),
            Some(expression) => match spdx::is_met(expression, ALLOWED) {
                Ok(true) => continue,
                Ok(false) => format!("is under `{expression}`"),
                Err(error) => format!("is under `{expression}`, which is no expression: {error}"),
            },
        };
        findings.push(Finding {
            rule: RULE,
            path: "Cargo.lock".into(),
            line: house.line_of_lock(&package.name),
            what: format!("{} {} {trouble}", package.name, package.version),
            mend: "do without it, or allow the licence in this rule with a decision record".into(),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Resolved;

    fn with(licence: Option<&str>) -> Vec<Finding> {
        let licence = licence.map(str::to_owned);
        let mut house = House::default();
        house.graph.resolved.push(Resolved { name: "x".into(), licence, ..Resolved::default() });
        check(&house)
    }

    #[test]
    fn a_licence_that_is_not_listed_is_found() {
        for licence in ["AGPL-3.0-only", "MIT AND GPL-2.0-only", "MIT OR"] {
            assert_eq!(with(Some(licence)).len(), 1, "{licence}");
        }
        assert_eq!(with(None).len(), 1);
    }

    #[test]
    fn a_choice_with_a_listed_side_passes() {
        for licence in ["MIT/Apache-2.0", "GPL-2.0-only OR MIT", "(MIT OR Apache-2.0) AND Zlib"] {
            assert_eq!(with(Some(licence)), [], "{licence}");
        }
    }
}
