//! The command line: which verb, with what.

use std::process::ExitCode;

use crate::backends::{self, images, orphans, runner};
use crate::{ci, fix, graph, parity, say, scan, test, verify};

/// What `cargo xtask help` prints.
pub const HELP: &str = "\
cargo xtask <verb>

  verify          check layers, drivers, licences, seams and papers; changes nothing
  fix             let clippy and rustfmt mend what they can; checks nothing
  ci              format, clippy, docs, every feature alone, isolation, then verify
  scan            try every route of a running server against openapi.json; needs Python and PyPI
  test [-- ARGS]  build the dlock binary, see to servers and run all tests; ARGS go to cargo test
  parity          run the suites on every store and write tasks/parity.md; needs both etcds
  backends        print which servers tests would run on, and how they were found
  images          build the images of servers that are not there; as root on Debian, with docker
  help            print this text

Exit code: 0 all well, 1 something was found or failed, 2 the command line was not understood.
";

/// A verb with its arguments.
#[derive(Debug, PartialEq, Eq)]
enum Verb {
    Verify,
    Fix,
    Ci,
    Test(Vec<String>),
    Scan,
    Parity,
    Backends,
    Images,
    /// Of this tool's own use: [`runner`].
    RunTest(Vec<String>),
    /// Of this tool's own use: [`orphans`].
    EndWithMe,
    Help,
}

/// Runs the verb that the arguments name and turns its outcome into an exit code.
#[must_use]
pub fn main(args: Vec<String>) -> ExitCode {
    let verb = match parse(args) {
        Ok(verb) => verb,
        Err(trouble) => {
            say::line(format_args!("{trouble}\n\n{HELP}"));
            return ExitCode::from(2);
        }
    };
    match run(verb) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say::line(format_args!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn parse(args: Vec<String>) -> Result<Verb, String> {
    let mut args = args.into_iter();
    let verb = match args.next().as_deref() {
        Some("verify") => Verb::Verify,
        Some("fix") => Verb::Fix,
        Some("ci") => Verb::Ci,
        Some("test") => {
            return match args.next().as_deref() {
                None => Ok(Verb::Test(Vec::new())),
                Some("--") => Ok(Verb::Test(args.collect())),
                Some(other) => Err(format!("`{other}`: arguments of cargo test go after `--`")),
            };
        }
        Some("scan") => Verb::Scan,
        Some("parity") => Verb::Parity,
        Some("backends") => Verb::Backends,
        Some("images") => Verb::Images,
        Some(runner::VERB) => return Ok(Verb::RunTest(args.collect())),
        Some(orphans::VERB) => Verb::EndWithMe,
        Some("help" | "--help" | "-h") => Verb::Help,
        Some(other) => return Err(format!("`{other}` is no verb")),
        None => return Err("a verb is missing".into()),
    };
    match args.next() {
        None => Ok(verb),
        Some(extra) => Err(format!("`{extra}`: this verb takes no arguments")),
    }
}

fn run(verb: Verb) -> anyhow::Result<bool> {
    match verb {
        Verb::Verify => verify::run(),
        Verb::Fix => fix::run(graph::metadata()?.workspace_root.as_std_path()),
        Verb::Ci => ci::run(),
        Verb::Test(args) => test::run(&args),
        Verb::Scan => scan::run(),
        Verb::Parity => parity::run(),
        Verb::Backends => Ok(backends::print()),
        Verb::Images => images::run(),
        Verb::RunTest(args) => runner::run(&args),
        Verb::EndWithMe => {
            orphans::run();
            Ok(true)
        }
        Verb::Help => {
            say::raw(HELP.as_bytes());
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Verb, String> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn every_verb_is_understood_and_in_the_help_text() {
        for (line, verb) in [
            ("verify", Verb::Verify),
            ("fix", Verb::Fix),
            ("ci", Verb::Ci),
            ("test", Verb::Test(vec![])),
            ("scan", Verb::Scan),
            ("parity", Verb::Parity),
            ("backends", Verb::Backends),
            ("images", Verb::Images),
            ("help", Verb::Help),
        ] {
            assert_eq!(parsed(line), Ok(verb));
            assert!(HELP.contains(&format!("\n  {line} ")), "{line}");
        }
    }

    #[test]
    fn what_follows_the_dashes_goes_to_cargo_test() {
        let args = ["-p", "dlock", "--", "--nocapture"].map(str::to_owned).to_vec();
        assert_eq!(parsed("test -- -p dlock -- --nocapture"), Ok(Verb::Test(args)));
    }

    #[test]
    fn a_test_program_is_run_with_whatever_it_is_given() {
        let args = ["target/x", "--list", "--"].map(str::to_owned).to_vec();
        assert_eq!(parsed("run-test target/x --list --"), Ok(Verb::RunTest(args)));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in ["", "vreify", "verify now", "test quickly", "scan all", "images 3.5"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
