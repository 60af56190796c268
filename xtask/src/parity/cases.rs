//! The cases that there are, read from the suite's sources: which test program has which.

use std::collections::BTreeMap;

use super::columns::{COLUMNS, Column, NO_STORE, NOT_APPLICABLE};
use crate::house::SourceFile;

/// Where columns are listed.
const LIST: &str = "xtask/src/parity/columns.rs";
const PROGRAMS: &str = "tests/conformance/tests/";
const SUITES: &[(&str, Suite)] = &[
    ("tests/conformance/src/suite.rs", Suite::Store),
    ("tests/conformance/src/service_suite.rs", Suite::Service),
];

/// What cases are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suite {
    /// A store by itself.
    Store,
    /// The service over a store.
    Service,
    /// What a test program has beside the suites.
    Apart,
}

/// A module of a test program that a suite's macro fills; without a name for tests of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    /// The test program.
    pub program: String,
    /// The module.
    pub name: String,
    /// What it is about.
    pub suite: Suite,
    /// Its cases, with the group that each is in.
    pub cases: Vec<String>,
}

/// All cases.
#[derive(Debug, Default)]
pub struct Registry {
    /// Every module of every test program.
    pub modules: Vec<Module>,
    /// Every case of each suite, in the suite's order.
    pub cases: BTreeMap<Suite, Vec<String>>,
}

/// A test of a program, as the program names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Test<'a> {
    /// The program.
    pub program: &'a str,
    /// The module.
    pub module: &'a str,
    /// The case.
    pub case: &'a str,
}

impl Test<'_> {
    /// Its name in the program's output.
    #[must_use]
    pub fn name(&self) -> String {
        if self.module.is_empty() {
            return self.case.to_owned();
        }
        format!("{}::{}", self.module, self.case)
    }
}

impl Registry {
    /// Reads them from the sources.
    #[must_use]
    pub fn of(files: &[SourceFile]) -> Self {
        let mut registry = Self::default();
        let mut macros = BTreeMap::new();
        for (path, suite) in SUITES {
            let text = files.iter().find(|file| file.path == *path).map_or("", |file| &file.text);
            for (name, cases) in macros_of(text) {
                registry.cases.entry(*suite).or_default().extend(cases.iter().cloned());
                macros.insert(name, (*suite, cases));
            }
        }
        for file in files {
            let Some(name) = file.path.strip_prefix(PROGRAMS) else { continue };
            let Some(program) = name.strip_suffix(".rs").filter(|name| !name.contains('/')) else {
                continue;
            };
            registry.add(program, &file.text, &macros);
        }
        registry
    }

    fn add(&mut self, program: &str, text: &str, macros: &BTreeMap<&str, (Suite, Vec<String>)>) {
        let mut module = |name: &str, suite, cases| {
            self.modules.push(Module { program: program.into(), name: name.into(), suite, cases });
        };
        for (called, name) in text.lines().filter_map(call) {
            if let Some((suite, cases)) = macros.get(called) {
                module(name, *suite, cases.clone());
            }
        }
        let own = tests_of(text);
        if !own.is_empty() {
            module("", Suite::Apart, own.clone());
            if COLUMNS.iter().any(|column| column.runs.contains(&(program, ""))) {
                self.cases.entry(Suite::Apart).or_default().extend(own);
            }
        }
    }

    /// The tests of a column, by their cases.
    #[must_use]
    pub fn tests(&self, column: &Column) -> BTreeMap<&str, Test<'_>> {
        let runs = self.modules.iter().filter(|module| {
            column.runs.contains(&(module.program.as_str(), module.name.as_str()))
                && module.suite == column.suite
        });
        let tests = runs.flat_map(|module| {
            module.cases.iter().map(|case| {
                let (program, name) = (module.program.as_str(), module.name.as_str());
                (case.as_str(), Test { program, module: name, case })
            })
        });
        tests.collect()
    }

    /// What no column is about, columns that are about nothing, and cases that a column lacks
    /// without a reason.
    #[must_use]
    pub fn unclaimed(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for Module { program, name, .. } in &self.modules {
            let run = (program.as_str(), name.as_str());
            let claimed = COLUMNS.iter().any(|column| column.runs.contains(&run));
            let no_store = NO_STORE.iter().any(|(other, _)| other == program);
            if !claimed && !no_store {
                problems.push(format!("no column of {LIST} has {program}::{name}"));
            }
        }
        for column in COLUMNS {
            for (program, name) in column.runs {
                let is = |module: &Module| (&*module.program, &*module.name) == (*program, *name);
                if !self.modules.iter().any(is) {
                    problems.push(format!("there is no {program}::{name} for {}", column.name));
                }
            }
            let tests = self.tests(column);
            let cases = self.cases.get(&column.suite).into_iter().flatten();
            let missing = cases.filter(|case| !tests.contains_key(case.as_str()));
            let missing = missing.filter(|case| why_not(case).is_none());
            problems.extend(missing.map(|case| format!("{} is not run on {case}", column.name)));
        }
        problems
    }
}

/// Why a case need not be run on every store.
#[must_use]
pub fn why_not(case: &str) -> Option<&'static str> {
    let (group, _) = case.split_once("::")?;
    NOT_APPLICABLE.iter().find(|(other, _)| *other == group).map(|(_, why)| *why)
}

/// The suite macros of a source, each with its cases.
fn macros_of(text: &str) -> Vec<(&str, Vec<String>)> {
    let mut macros = Vec::new();
    for part in text.split("macro_rules! ").skip(1) {
        let name = part.split(' ').next().unwrap_or_default();
        let body = part.split_once("cases_as_tests! {").map_or("", |(_, body)| body);
        let (mut group, mut cases) = ("", Vec::new());
        for line in body.lines().map(str::trim) {
            if let Some(name) = line.strip_suffix(" {").filter(|name| is_name(name)) {
                group = name;
            } else if let Some(case) = line.strip_suffix(',').filter(|case| is_name(case)) {
                cases.push(format!("{group}::{case}"));
            }
        }
        if !cases.is_empty() {
            macros.push((name, cases));
        }
    }
    macros
}

fn is_name(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
}

/// The macro and the module of a line that calls a suite's macro.
fn call(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("dlock_conformance::")?.split_once("!(")?;
    Some((name, rest.split_once(',')?.0))
}

/// The tests that a program writes out itself.
fn tests_of(text: &str) -> Vec<String> {
    let mut tests = Vec::new();
    let mut marked = false;
    for line in text.lines() {
        let function = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(function) = function {
            let name = function.split(['(', '<']).next().unwrap_or_default();
            tests.extend(marked.then(|| name.to_owned()));
            marked = false;
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::house;

    const MACROS: &str = "macro_rules! conformance {\n    ($m:ident) => {\n        $crate::cases_as_tests! \
                          { $harness, cases,\n            grant {\n                one,\n                \
                          two,\n            }\n            virtual_time {\n                late,\n";

    #[test]
    fn cases_are_read_from_macros_and_from_what_calls_them() {
        let own = "#[tokio::test(flavor = \"x\")]\nasync fn alone() {}\n\nfn helper() {}\n";
        let house = house(&[
            ("tests/conformance/src/suite.rs", MACROS),
            (
                "tests/conformance/tests/memory.rs",
                "dlock_conformance::conformance!(memory, Memory);\n",
            ),
            ("tests/conformance/tests/embedded_two_processes.rs", own),
            ("tests/conformance/tests/new.rs", "dlock_conformance::conformance!(new, New);\n"),
        ]);
        let registry = Registry::of(&house.files);
        assert_eq!(
            registry.cases[&Suite::Store],
            ["grant::one", "grant::two", "virtual_time::late"]
        );
        assert_eq!(registry.cases[&Suite::Apart], ["alone"]);
        let tests = registry.tests(&COLUMNS[0]);
        assert_eq!(tests["grant::two"].name(), "memory::grant::two");
        let problems = registry.unclaimed();
        assert!(problems.contains(&format!("no column of {LIST} has new::new")), "{problems:?}");
        assert!(problems.contains(&"there is no etcd::etcd for etcd 3.4".to_owned()));
        assert!(problems.contains(&"embedded is not run on grant::one".to_owned()));
        assert!(!problems.iter().any(|problem| problem.contains("late")), "{problems:?}");
    }
}
