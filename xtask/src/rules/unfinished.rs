//! Nothing is left for later in silence: no placeholder bodies, no test that is skipped.

use crate::finding::Finding;
use crate::grep;
use crate::house::House;

/// The name findings carry.
pub const RULE: &str = "unfinished";

/// A needle in two halves, so that this file is not found itself; what is wrong; how to mend it.
const NEEDLES: &[(&str, &str, &str, &str)] = &[
    ("to", "do!", "a placeholder body", "write it, or take the function out"),
    ("unimple", "mented!", "a placeholder body", "write it, or take the function out"),
    ("#[ig", "nore", "a test that is skipped", "make it run, or take it out"),
];

/// Finds placeholders and skipped tests in every Rust source.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (half, other, what, mend) in NEEDLES {
        let needle = format!("{half}{other}");
        for file in house.rust() {
            let whole =
                |at: &usize| !file.text.as_bytes()[..*at].last().is_some_and(grep::is_word_byte);
            let found = grep::find_all(&file.text, &needle).into_iter().filter(whole);
            findings.extend(found.map(|at| file.finding(RULE, at, *what, *mend)));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    #[test]
    fn placeholders_and_skipped_tests_are_found() {
        let source = concat!(
            "fn a() {\n    to",
            "do!()\n}\nfn b() { unimple",
            "mented!(\"later\") }\n#[test]\n#[ig",
            "nore = \"slow\"]\nfn c() {}\n"
        );
        let house = house(&[("tests/x/tests/a.rs", source)]);
        assert_eq!(places(&check(&house)), [2, 4, 6].map(|l| format!("tests/x/tests/a.rs:{l}")));
    }

    #[test]
    fn words_like_them_pass() {
        let source = "fn todo() { my_todo!(ignore); } // unimplemented, #[must_use]\n";
        assert_eq!(check(&house(&[("app/src/a.rs", source)])), []);
    }
}
