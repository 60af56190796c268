//! The parity page says what the sources say: the same cases, columns and differences.

use crate::finding::Finding;
use crate::house::House;
use crate::parity;

/// The name findings carry.
pub const RULE: &str = "parity";

/// Where there are no suites there is nothing to be on a par.
const SUITE: &str = "tests/conformance/src/suite.rs";

/// Finds a page that is missing or was left behind.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    if house.file(SUITE).is_none() {
        return Vec::new();
    }
    let finding = |what| Finding {
        rule: RULE,
        path: parity::PAGE.into(),
        line: 1,
        what,
        mend: parity::MEND.into(),
    };
    parity::not_current(&house.files).into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::{cases::Registry, page};
    use crate::testing::house;

    const SUITE_TEXT: &str = "macro_rules! conformance {\n$crate::cases_as_tests! { $harness, cases,\n\
                              grant {\none,\n";

    /// What is found of a page, beside that this tree has no stores.
    fn found(page: &str) -> Vec<String> {
        let house = house(&[(SUITE, SUITE_TEXT), (parity::PAGE, page)]);
        let findings = check(&house).into_iter().map(|finding| finding.what);
        findings.filter(|what| what.starts_with("it should say")).collect()
    }

    #[test]
    fn a_page_that_was_left_behind_is_found() {
        let tree = house(&[(SUITE, SUITE_TEXT)]);
        assert!(check(&tree).iter().any(|finding| finding.what == "there is none"));
        let current = page::render(&Registry::of(&tree.files), &page::Filled::default());
        assert_eq!(found(&current), [""; 0]);
        assert_eq!(found(&current.replace("`grant::one`", "`grant::uno`")).len(), 1);
        assert_eq!(found(&current.replace("Where a token comes from", "Tokens")).len(), 1);
        assert_eq!(found(&format!("{current}more\n")).len(), 1);
    }
}
