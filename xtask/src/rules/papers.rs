//! The ledger of tasks names tests that exist.

use crate::finding::Finding;
use crate::grep;
use crate::house::{House, SourceFile};

/// The name findings carry.
pub const RULE: &str = "papers";

/// The ledger.
const LEDGER: &str = "tasks/README.md";

/// Finds a missing ledger, and in it every `path/to/file.rs::test_name` between backticks whose
/// file or test is missing.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let Some(ledger) = house.file(LEDGER) else {
        return vec![Finding {
            rule: RULE,
            path: LEDGER.into(),
            line: 1,
            what: "the ledger is missing".into(),
            mend: "write it: every task, and the tests that show it".into(),
        }];
    };
    let missing = |(at, path, test): (usize, &str, &str)| {
        let what = match house.file(path) {
            None => format!("there is no {path}"),
            Some(file) if !holds(file, test) => format!("{path} has no test {test}"),
            Some(_) => return None,
        };
        Some(ledger.finding(RULE, at, what, "name the test as it is called now, or write it"))
    };
    named_tests(&ledger.text).into_iter().filter_map(missing).collect()
}

/// A test is a function, or a case that a macro makes a function of.
fn holds(file: &SourceFile, test: &str) -> bool {
    !grep::find_words(&file.text, test).is_empty()
}

/// Every test named in a text: the offset, the file, the last part of the name.
fn named_tests(text: &str) -> Vec<(usize, &str, &str)> {
    let mut tests = Vec::new();
    for at in grep::find_all(text, ".rs::") {
        let open = text[..at].rfind(['`', '\n']).filter(|open| text[*open..].starts_with('`'));
        let file_end = at + ".rs".len();
        let rest = &text[file_end..];
        let close = rest.find(['`', '\n']).filter(|close| rest[*close..].starts_with('`'));
        if let (Some(open), Some(close)) = (open, close) {
            let name = rest[..close].rsplit("::").next().unwrap_or_default();
            let name = name.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next();
            tests.push((open, &text[open + 1..file_end], name.unwrap_or_default()));
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    const SOURCE: &str = "mod tests {\n    fn grants_once() {}\n}\ncases! { refuses_stale }\n";

    #[test]
    fn a_missing_file_and_a_missing_test_are_found_on_their_line() {
        let ledger = "# Ledger\n`domain/src/a.rs::grants`\nx `b.rs::y`, `domain/src/a.rs::zz`\n";
        let house = house(&[(LEDGER, ledger), ("domain/src/a.rs", SOURCE)]);
        let here = [2, 3, 3].map(|line| format!("{LEDGER}:{line}"));
        assert_eq!(places(&check(&house)), here);
    }

    #[test]
    fn a_ledger_that_is_missing_is_found() {
        assert_eq!(places(&check(&house(&[]))), [format!("{LEDGER}:1")]);
    }

    #[test]
    fn tests_that_exist_pass_and_so_does_plain_talk() {
        let ledger = "`domain/src/a.rs::tests::grants_once`, `domain/src/a.rs::refuses_stale`\n\
                      `domain/src/b.rs` and file.rs::name without ticks\n";
        let house = house(&[(LEDGER, ledger), ("domain/src/a.rs", SOURCE)]);
        assert_eq!(check(&house), []);
    }
}
