//! The parity page: which case of the suites holds on which store, and what differs between them.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`columns`] | the stores, and which runs of which test programs are theirs |
//! | [`cases`] | the cases that the sources say there are, and in which program |
//! | [`results`] | what a run's output and its notes say of each |
//! | [`page`] | the page, written from that and read back |
//! | [`divergence`] | the table of what differs, kept beside the suite that asserts it |
//!
//! # What stays true
//! - A cell comes from a run: `cargo xtask parity` writes it, and nobody by hand.
//! - Whatever else is on the page is a function of the sources, so that `verify` finds a page that
//!   is not current without running anything.
//! - `cargo xtask test` fails where a run contradicts the page.

pub mod cases;
pub mod columns;
#[path = "../../../tests/conformance/src/divergence.rs"]
pub mod divergence;
pub mod page;
pub mod results;

use std::fs;

use anyhow::Context;

use crate::house::{self, SourceFile};
use crate::{graph, say, test};
use cases::Registry;
use page::Filled;
use results::Results;

/// Where it is.
pub const PAGE: &str = "tasks/parity.md";

/// How it is made current.
pub const MEND: &str = "run `cargo xtask parity` and commit what it writes";

/// So many contradictions are told one by one.
const TOLD: usize = 20;

/// Runs the suites and writes the page; whether it could. Nothing is written unless every case
/// passed on every store.
///
/// # Errors
/// If the workspace cannot be read, cargo cannot be started or the page cannot be written.
pub fn run() -> anyhow::Result<bool> {
    let root = graph::metadata()?.workspace_root.into_std_path_buf();
    let args = ["-p", results::PACKAGE].map(str::to_owned);
    let (passed, results) = test::collect(&args, None)?;
    let registry = Registry::of(&house::read_files(&root)?);
    let (filled, mut problems) = Filled::by_a_run(&registry, &results);
    problems.extend(registry.unclaimed());
    if !passed {
        problems.push("not everything passed".to_owned());
    }
    if problems.is_empty() {
        let text = page::render(&registry, &filled);
        fs::write(root.join(PAGE), text).with_context(|| format!("cannot write {PAGE}"))?;
        say::line(format_args!("{PAGE} is written"));
    }
    tell(&problems, &mut |line| say::line(format_args!("{PAGE} is left as it was: {line}")));
    Ok(problems.is_empty())
}

/// What is not current about the page, given the sources: nothing, if it is.
#[must_use]
pub fn not_current(files: &[SourceFile]) -> Vec<String> {
    let registry = Registry::of(files);
    let mut problems = registry.unclaimed();
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        problems.push("there is none".to_owned());
        return problems;
    };
    let rendered = page::render(&registry, &Filled::by_a_page(&page.text));
    let mut lines = page.text.lines();
    let differs = rendered.lines().find(|line| lines.next() != Some(line));
    if let Some(line) = differs.or_else(|| lines.next().map(|_| "(nothing more)")) {
        problems.push(format!("it should say: {line}"));
    }
    problems
}

/// What a run says otherwise than the page, a line each.
#[must_use]
pub fn contradictions(files: &[SourceFile], results: &Results) -> Vec<String> {
    let registry = Registry::of(files);
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |file| file.text.as_str());
    let mut told = Vec::new();
    let found = Filled::by_a_page(page).contradicted(&registry, results);
    tell(&found, &mut |line| told.push(format!("PARITY: {line}")));
    if !told.is_empty() {
        told.push(format!("PARITY: {PAGE} does not say what was run: {MEND}"));
    }
    told
}

/// The first few, and how many more there are.
fn tell(problems: &[String], say: &mut dyn FnMut(&str)) {
    problems.iter().take(TOLD).for_each(|problem| say(problem));
    if problems.len() > TOLD {
        say(&format!("and {} more", problems.len() - TOLD));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use divergence::{OVER_HTTP, ROWS, STORES};

    #[test]
    fn the_committed_page_is_current() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let files = house::read_files(root.as_ref()).unwrap();
        assert_eq!(not_current(&files), [""; 0], "{PAGE} is not current: {MEND}");
    }

    #[test]
    fn every_cell_says_why_and_what_shows_it() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let cells = ROWS.iter().flat_map(|row| row.cells.iter().zip(STORES.iter()));
        let cells = cells.map(|(cell, store)| (cell, store.there));
        for (cell, there) in cells.chain(OVER_HTTP.iter().map(|cell| (cell, true))) {
            assert!(!cell.what.is_empty() && !cell.why.is_empty(), "{cell:?}");
            assert!(!there || !cell.shown.is_empty(), "nothing shows {cell:?}");
            for shown in cell.shown.iter().filter(|shown| shown.ends_with(".md")) {
                assert!(root.join("tasks").join(shown).is_file(), "there is no {shown}");
            }
        }
    }
}
