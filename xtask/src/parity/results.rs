//! What a run says: which tests passed in which program, on what, and what they noted.

use std::collections::BTreeMap;

use super::cases::Test;

/// The package whose test programs are the suites.
pub const PACKAGE: &str = "dlock-conformance";

/// The variable that tells the suites where to note what they found; its file begins each program's
/// notes with the same [`heading`] as the output.
pub const NOTES: &str = "TEST_DLOCK_NOTES";

const HEADING: &str = "     Suite ";

/// The line that goes before the output of a test program.
#[must_use]
pub fn heading(program: &str, on: &str) -> String {
    if on.is_empty() {
        format!("{HEADING}{program}")
    } else {
        format!("{HEADING}{program} on {on}")
    }
}

/// All that a run said of the suites.
#[derive(Debug, Default)]
pub struct Results {
    runs: BTreeMap<(String, String), Run>,
    /// Whose output is being read.
    now: Option<(String, String)>,
}

/// What one program said.
#[derive(Debug, Default)]
struct Run {
    passed: BTreeMap<String, bool>,
    notes: BTreeMap<String, Vec<String>>,
    /// Whether nothing of it was left out.
    whole: bool,
}

/// What became of a test.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Its program was not run on that, or only parts of it.
    Unknown,
    /// Its program was run, all of it, and has no such test.
    NotThere,
    /// It failed.
    Failed,
    /// It passed and noted this.
    Passed(&'a [String]),
}

impl Outcome<'_> {
    /// In words.
    #[must_use]
    pub const fn words(&self) -> &'static str {
        match self {
            Self::Unknown => "was not run",
            Self::NotThere => "is not there",
            Self::Failed => "failed",
            Self::Passed(_) => "passed",
        }
    }
}

impl Results {
    /// Takes in a line of the run's output, or of its notes.
    pub fn add(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(heading) = line.strip_prefix(HEADING) {
            let (program, on) = heading.split_once(" on ").unwrap_or((heading, ""));
            let run = (program.to_owned(), on.to_owned());
            self.runs.entry(run.clone()).or_default();
            self.now = Some(run);
            return;
        }
        let Some(run) = self.now.as_ref().and_then(|now| self.runs.get_mut(now)) else { return };
        if let Some(sums) = line.strip_prefix("test result: ") {
            run.whole = sums.contains(" 0 filtered out") && sums.contains(" 0 ignored");
            // What comes next is another program's, until it says whose.
            self.now = None;
        } else if let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|test| test.split_once(" ... "))
        {
            run.passed.insert(name.to_owned(), outcome == "ok");
        } else if let Some((test, note)) = line.split_once(' ')
            && let Some((_program, name)) = test.split_once("::")
        {
            run.notes.entry(name.to_owned()).or_default().push(note.to_owned());
        }
    }

    /// What became of a test on a server, or on whichever.
    #[must_use]
    pub fn outcome(&self, test: &Test<'_>, on: &str) -> Outcome<'_> {
        let ran = self.runs.iter().find(|((program, there), _)| {
            program == test.program && (on.is_empty() || on == there)
        });
        let Some((_, run)) = ran else { return Outcome::Unknown };
        let name = test.name();
        match run.passed.get(&name) {
            Some(true) => Outcome::Passed(run.notes.get(&name).map_or(&[], Vec::as_slice)),
            Some(false) => Outcome::Failed,
            None if run.whole => Outcome::NotThere,
            None => Outcome::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Results {
        let mut results = Results::default();
        lines.iter().for_each(|line| results.add(line));
        results
    }

    const TEST: Test<'_> = Test { program: "etcd", module: "etcd", case: "grant::one" };

    #[test]
    fn a_program_that_runs_twice_has_two_outcomes() {
        let results = read(&[
            &heading("etcd", "etcd 3.4"),
            "running 2 tests",
            "test etcd::grant::one ... ok\n",
            "test etcd::grant::two ... FAILED\n",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            &heading("etcd", "etcd 3.5"),
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out",
            "test etcd::grant::one ... of another program",
            &heading("etcd", "etcd 3.4"),
            "etcd::etcd::grant::one lacks limits\n",
        ]);
        assert_eq!(results.outcome(&TEST, "etcd 3.4"), Outcome::Passed(&["lacks limits".into()]));
        assert_eq!(results.outcome(&TEST, "etcd 3.5"), Outcome::Unknown);
        assert_eq!(results.outcome(&TEST, "etcd 4"), Outcome::Unknown);
        let two = Test { case: "grant::two", ..TEST };
        assert_eq!(results.outcome(&two, ""), Outcome::Failed);
        let three = Test { case: "grant::three", ..TEST };
        assert_eq!(results.outcome(&three, ""), Outcome::NotThere);
    }
}
