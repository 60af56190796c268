//! The papers under `tasks/` name files and tests that exist.

use crate::finding::Finding;
use crate::grep;
use crate::house::{House, SourceFile};

/// The name findings carry.
pub const RULE: &str = "papers";

/// The ledger.
const LEDGER: &str = "tasks/README.md";

/// Where the papers are.
const PAPERS: &str = "tasks/";

/// Finds a missing ledger, and in every paper each `path/to/file.rs` and each
/// `path/to/file.rs::test_name` between backticks whose file or test is missing.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    if house.file(LEDGER).is_none() {
        findings.push(Finding {
            rule: RULE,
            path: LEDGER.into(),
            line: 1,
            what: "the ledger is missing".into(),
            mend: "write it: every task, and the tests that show it".into(),
        });
    }
    let papers = |file: &&SourceFile| file.path.starts_with(PAPERS) && file.path.ends_with(".md");
    for paper in house.files.iter().filter(papers) {
        findings.extend(missing_in(house, paper));
    }
    findings
}

fn missing_in(house: &House, paper: &SourceFile) -> Vec<Finding> {
    let missing = |(at, path, test): (usize, &str, Option<&str>)| {
        let what = match (house.file(path), test) {
            (None, _) => format!("there is no {path}"),
            (Some(file), Some(test)) if !holds(file, test) => format!("{path} has no test {test}"),
            _ => return None,
        };
        Some(paper.finding(RULE, at, what, "name it as it is called now, or write it"))
    };
    let tests = named_tests(&paper.text).into_iter().map(|(at, path, test)| (at, path, Some(test)));
    let files = named_files(&paper.text).into_iter().map(|(at, path)| (at, path, None));
    tests.chain(files).filter_map(missing).collect()
}

/// Every source file named in a text as a path between backticks: the offset and the path.
fn named_files(text: &str) -> Vec<(usize, &str)> {
    let mut files = Vec::new();
    for at in grep::find_all(text, ".rs`") {
        let end = at + ".rs".len();
        let open = text[..at].rfind(['`', '\n']).filter(|open| text[*open..].starts_with('`'));
        let path = open.map(|open| (open, &text[open + 1..end]));
        files
            .extend(path.filter(|(_, path)| path.contains('/') && !path.contains([' ', '*', '{'])));
    }
    files
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
        let other = "in `domain/src/gone.rs` and `domain/src/a.rs`\n";
        let house = house(&[
            (LEDGER, ledger),
            ("domain/src/a.rs", SOURCE),
            ("tasks/decisions/0001.md", other),
        ]);
        let mut found = places(&check(&house));
        found.sort();
        let mut here = [2, 3, 3].map(|line| format!("{LEDGER}:{line}")).to_vec();
        here.push("tasks/decisions/0001.md:1".to_owned());
        here.sort();
        assert_eq!(found, here);
    }

    #[test]
    fn a_ledger_that_is_missing_is_found() {
        assert_eq!(places(&check(&house(&[]))), [format!("{LEDGER}:1")]);
    }

    #[test]
    fn tests_that_exist_pass_and_so_does_plain_talk() {
        let ledger = "`domain/src/a.rs::tests::grants_once`, `domain/src/a.rs::refuses_stale`\n\
                      `domain/src/a.rs`, `b.rs`, and file.rs::name without ticks\n";
        let house = house(&[(LEDGER, ledger), ("domain/src/a.rs", SOURCE)]);
        assert_eq!(check(&house), []);
    }
}
