//! The page: filled by a run, or by the page as it is, and written out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::cases::{Registry, Suite, Test, why_not};
use super::columns::{COLUMNS, Column, NO_STORE, NOT_APPLICABLE};
use super::divergence::{Cell, OVER_HTTP, ROWS, STORES};
use super::results::{Outcome, Results};

const PASSED: &str = "+";
const NOT_RUN: &str = "?";
const NOT_APPLICABLE_MARK: &str = "·";
/// Goes before what a store lacks, in the cell of a case that asserts so.
const LACKS: &str = "−";

const HEAD: &str = "\
# Parity

What holds on which store, and what differs between them. `cargo xtask parity` writes this page from
a run of the suites, whose every cell is one test; the texts of [what differs](#what-differs) are
those of `tests/conformance/src/divergence.rs`. `cargo xtask verify` finds a page that the sources have
left behind, and `cargo xtask test` fails where its own run contradicts a cell.

In the tables `+` is a case that passed, `− waiter` one that passed by asserting that the store lacks
exactly this, as it says of itself, and `·` one that is [not applicable](#not-applicable). *bare* is
the memory store stripped of every capability, *an example's* the store of `app/examples/own_store`;
a column over HTTP is the same service behind its server and a client.
";

/// The headings of the tables of cases, in which a page is read back.
const TABLES: &[(Suite, &str)] = &[
    (Suite::Store, "## Cases of the store"),
    (Suite::Service, "## Cases of the service"),
    (Suite::Apart, "## Cases of two processes"),
];
const MEASURED: &str = "## Measured";

/// What is filled in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// By suite, column and case.
    cells: BTreeMap<(Suite, String, String), String>,
    /// By property and column.
    measured: BTreeMap<(String, String), String>,
}

impl Filled {
    /// Filled by a run, and the cells that it has nothing for.
    #[must_use]
    pub fn by_a_run(registry: &Registry, results: &Results) -> (Self, Vec<String>) {
        let (mut filled, mut problems) = (Self::default(), Vec::new());
        for column in COLUMNS {
            for (case, test) in registry.tests(column) {
                match results.outcome(&test, column.on) {
                    Outcome::Passed(notes) => filled.add(column, case, notes),
                    outcome => problems.push(said(column, &test, outcome.words())),
                }
            }
        }
        (filled, problems)
    }

    fn add(&mut self, column: &Column, case: &str, notes: &[String]) {
        let key = (column.suite, column.name.to_owned(), case.to_owned());
        self.cells.insert(key, cell(notes));
        for (property, what) in shown(notes) {
            self.measured.insert((property.into(), column.name.into()), what.into());
        }
    }

    /// Filled by a page.
    #[must_use]
    pub fn by_a_page(text: &str) -> Self {
        let mut filled = Self::default();
        let (mut section, mut columns) = ("", Vec::new());
        for line in text.lines() {
            let Some(row) = line.strip_prefix("| ").and_then(|row| row.strip_suffix(" |")) else {
                if line.starts_with('#') {
                    section = line;
                }
                columns.clear();
                continue;
            };
            let mut row = row.split(" | ");
            let first = row.next().unwrap_or_default();
            if columns.is_empty() {
                columns = row.collect();
                continue;
            }
            if first == "---" {
                continue;
            }
            let suite = TABLES.iter().find(|(_, heading)| *heading == section);
            for (column, cell) in columns.iter().map(|name| (*name).to_owned()).zip(row) {
                if let Some((suite, _)) = suite {
                    let case = first.trim_matches('`').to_owned();
                    filled.cells.insert((*suite, column, case), cell.to_owned());
                } else if section == MEASURED {
                    filled.measured.insert((first.to_owned(), column), cell.to_owned());
                }
            }
        }
        filled
    }

    /// What a run says otherwise.
    #[must_use]
    pub fn contradicted(&self, registry: &Registry, results: &Results) -> Vec<String> {
        let mut found = Vec::new();
        for column in COLUMNS {
            for (case, test) in registry.tests(column) {
                let here = self.cell(column, case);
                let notes = match results.outcome(&test, column.on) {
                    Outcome::Unknown => continue,
                    Outcome::Passed(notes) => notes,
                    outcome => {
                        found.push(said(column, &test, outcome.words()));
                        continue;
                    }
                };
                if cell(notes) != here {
                    found.push(said(column, &test, &format!("{}, not {here}", cell(notes))));
                }
                for (property, what) in shown(notes) {
                    let key = (property.to_owned(), column.name.to_owned());
                    if self.measured.get(&key).is_none_or(|here| here != what) {
                        found.push(said(column, &test, &format!("{property}: {what}")));
                    }
                }
            }
        }
        found
    }

    fn cell(&self, column: &Column, case: &str) -> &str {
        let key = (column.suite, column.name.to_owned(), case.to_owned());
        self.cells.get(&key).map_or(NOT_RUN, String::as_str)
    }
}

fn said(column: &Column, test: &Test<'_>, what: &str) -> String {
    let on = if column.on.is_empty() { String::new() } else { format!(" on {}", column.on) };
    format!("{}::{}{on}: {what}", test.program, test.name())
}

/// The cell of a test that passed and noted this.
fn cell(notes: &[String]) -> String {
    let lacks: BTreeSet<_> = notes.iter().filter_map(|note| note.strip_prefix("lacks ")).collect();
    if lacks.is_empty() {
        return PASSED.to_owned();
    }
    let lacks: Vec<_> = lacks.into_iter().collect();
    format!("{LACKS} {}", lacks.join(", "))
}

/// The properties that were measured.
fn shown(notes: &[String]) -> impl Iterator<Item = (&str, &str)> {
    notes.iter().filter_map(|note| note.strip_prefix("shows ")?.split_once(": "))
}

/// Writes the page; `?` stands where nothing was filled in.
#[must_use]
pub fn render(registry: &Registry, filled: &Filled) -> String {
    let mut page = HEAD.to_owned();
    totals(&mut page, registry, filled);
    measured(&mut page, filled);
    differs(&mut page);
    for (suite, heading) in TABLES {
        let _ = write!(page, "\n{heading}\n\n");
        let columns: Vec<_> = columns(*suite).collect();
        let tests: Vec<_> = columns.iter().map(|column| registry.tests(column)).collect();
        let names = columns.iter().map(|column| column.name.to_owned());
        row(&mut page, "case", names);
        row(&mut page, "---", columns.iter().map(|_| "---".to_owned()));
        for case in registry.cases.get(suite).into_iter().flatten() {
            let cells = columns.iter().zip(&tests).map(|(column, tests)| {
                let runs = tests.contains_key(case.as_str());
                if runs { filled.cell(column, case) } else { NOT_APPLICABLE_MARK }.to_owned()
            });
            row(&mut page, &format!("`{case}`"), cells);
        }
    }
    page.push_str("\n## Not applicable\n\n");
    for (group, why) in NOT_APPLICABLE {
        let _ = writeln!(page, "- `{group}`: {why}");
    }
    page.push_str("\nTest programs beside the suites that are no run on a store:\n\n");
    for (program, what) in NO_STORE {
        let _ = writeln!(page, "- `{program}`: {what}");
    }
    page
}

fn columns(suite: Suite) -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(move |column| column.suite == suite)
}

fn row(page: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let _ = writeln!(page, "| {first} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

fn totals(page: &mut String, registry: &Registry, filled: &Filled) {
    page.push_str("\n## Totals\n\n");
    let heads = ["passed", "of these asserting an absence", "not applicable", "not run"];
    row(page, "suite, store", heads.iter().map(|head| (*head).to_owned()));
    row(page, "---", heads.iter().map(|_| "---".to_owned()));
    let mut sums = [0; 4];
    for column in COLUMNS {
        let tests = registry.tests(column);
        let mut counts = [0; 4];
        for case in registry.cases.get(&column.suite).into_iter().flatten() {
            let cell = tests.get(case.as_str()).map(|_| filled.cell(column, case));
            counts[0] += usize::from(cell.is_some_and(|cell| cell != NOT_RUN));
            counts[1] += usize::from(cell.is_some_and(|cell| cell.starts_with(LACKS)));
            counts[2] += usize::from(cell.is_none() && why_not(case).is_some());
            counts[3] += usize::from(cell == Some(NOT_RUN));
        }
        let suite = match column.suite {
            Suite::Store => "store",
            Suite::Service => "service",
            Suite::Apart => "processes",
        };
        let name = format!("{suite}: {}", column.name);
        row(page, &name, counts.iter().map(usize::to_string));
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    row(page, "**all**", sums.iter().map(|sum| format!("**{sum}**")));
}

fn measured(page: &mut String, filled: &Filled) {
    let _ = write!(
        page,
        "\n{MEASURED}\n\nWhat the stores showed in that run; the cases assert it.\n\n"
    );
    let columns: Vec<_> = columns(Suite::Store).collect();
    row(page, "property", columns.iter().map(|column| column.name.to_owned()));
    row(page, "---", columns.iter().map(|_| "---".to_owned()));
    let properties: BTreeSet<_> = filled.measured.keys().map(|(property, _)| property).collect();
    for property in properties {
        let cells = columns.iter().map(|column| {
            let key = (property.clone(), column.name.to_owned());
            filled.measured.get(&key).map_or(NOT_RUN, String::as_str).to_owned()
        });
        row(page, property, cells);
    }
}

fn differs(page: &mut String) {
    page.push_str("\n## What differs\n");
    for this in ROWS {
        let _ = write!(page, "\n### {}\n\n", this.property);
        table(
            page,
            "store",
            this.cells.iter().zip(STORES).map(|(cell, store)| {
                let yet = if store.there { "" } else { " (not yet)" };
                (format!("{}{yet}", store.name), cell)
            }),
        );
    }
    page.push_str("\n### Over HTTP, with any store\n\n");
    table(page, "no.", OVER_HTTP.iter().enumerate().map(|(n, cell)| ((n + 1).to_string(), cell)));
}

fn table<'a>(page: &mut String, first: &str, cells: impl Iterator<Item = (String, &'a Cell)>) {
    row(page, first, ["what", "why", "shown by"].map(str::to_owned).into_iter());
    row(page, "---", ["---"; 3].map(str::to_owned).into_iter());
    for (name, cell) in cells {
        let shown: Vec<_> = cell.shown.iter().map(|shown| reference(shown)).collect();
        let shown = if shown.is_empty() { "–".to_owned() } else { shown.join(", ") };
        row(page, &name, [cell.what.to_owned(), cell.why.to_owned(), shown].into_iter());
    }
}

/// A test between backticks, where `verify` looks it up; a page as a link.
fn reference(shown: &str) -> String {
    let Some(page) = shown.strip_suffix(".md") else { return format!("`{shown}`") };
    let name = page.rsplit('/').next().unwrap_or_default();
    let number = name.split('-').next().unwrap_or_default();
    format!("[{number}]({shown})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::results::heading;
    use crate::testing::house;

    const SUITE: &str = "macro_rules! conformance {\n$crate::cases_as_tests! { $harness, cases,\n\
                         grant {\none,\ntwo,\n";
    const PROGRAM: &str = "dlock_conformance::conformance!(own, Own);\n";

    fn registry() -> Registry {
        Registry::of(
            &house(&[
                ("tests/conformance/src/suite.rs", SUITE),
                ("tests/conformance/tests/own_store.rs", PROGRAM),
            ])
            .files,
        )
    }

    fn results(lines: &[&str]) -> Results {
        let mut results = Results::default();
        results.add(&heading("own_store", ""));
        lines.iter().for_each(|line| results.add(line));
        results
    }

    const ALL: &[&str] = &[
        "test own::grant::one ... ok",
        "test own::grant::two ... ok",
        "own_store::own::grant::two lacks waiter",
        "own_store::own::grant::two shows size: 7 ms",
        "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
    ];

    #[test]
    fn a_page_is_written_and_read_back() {
        let registry = registry();
        let (filled, problems) = Filled::by_a_run(&registry, &results(ALL));
        assert_eq!(problems, [""; 0]);
        let page = render(&registry, &filled);
        assert!(
            page.contains("| `grant::two` | · | · | − waiter | · | · | · | · | · | · |\n"),
            "{page}"
        );
        assert!(page.contains("| store: an example's | 2 | 1 | 0 | 0 |\n"), "{page}");
        assert_eq!(render(&registry, &Filled::by_a_page(&page)), page);
    }

    #[test]
    fn a_run_that_says_otherwise_contradicts_the_page() {
        let registry = registry();
        let (filled, _) = Filled::by_a_run(&registry, &results(ALL));
        let filled = Filled::by_a_page(&render(&registry, &filled));
        let contradicted = |lines: &[&str]| filled.contradicted(&registry, &results(lines));
        assert_eq!(contradicted(ALL), [""; 0]);
        assert_eq!(contradicted(&ALL[..1]), [""; 0], "the rest was not run");
        assert_eq!(contradicted(&[ALL[0], ALL[4]]), ["own_store::own::grant::two: is not there"]);
        let failed = "test own::grant::one ... FAILED";
        assert_eq!(contradicted(&[failed]), ["own_store::own::grant::one: failed"]);
        assert_eq!(contradicted(&ALL[1..2]), ["own_store::own::grant::two: +, not − waiter"]);
        let other = "own_store::own::grant::two shows size: 8 ms";
        let said = contradicted(&[ALL[1], ALL[2], other]);
        assert_eq!(said, ["own_store::own::grant::two: size: 8 ms"]);
    }
}
