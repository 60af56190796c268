//! `scan`: every route of a running server, against the description that is committed.
//!
//! The cases are made by schemathesis, out of `openapi.json`: what the description allows, what it
//! just about does not, and sequences in which one call uses the answer of another. Each answer must
//! be one of those described, in its status, its content type, its headers and its body, and none a
//! server error.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `python` | the tool, in a folder of its own below `target/` |
//! | `server` | a `dlock serve` that does not outlive the scan |
//! | `counts` | how many cases each route had |
//!
//! `xtask/scan/` holds what the tool reads: its versions, its settings, and what it must know of
//! dlock besides.

mod counts;
mod python;
mod server;

use std::fs;
use std::process::Command;

use anyhow::Context as _;

use crate::stopwatch::Stopwatch;
use crate::{cargo, graph, say};

/// The same cases in every scan.
const SEED: &str = "7420";

/// In seconds. Nothing waits that long: the longest wait for a lock is shortened by the hooks, and
/// one call of the store has five.
const PATIENCE: &str = "30";

/// The one check that is not made: that what the description allows is accepted. A description can
/// say what a token is, but not which one is live: most of the allowed renewals are rightly answered
/// with 410.
const EXCLUDED: &str = "positive_data_acceptance";

/// Scans; whether nothing was found.
///
/// # Errors
/// If Python, the tool or the server cannot be had; each says what is missing.
pub fn run() -> anyhow::Result<bool> {
    let watch = Stopwatch::start();
    let metadata = graph::metadata()?;
    let root = metadata.workspace_root.as_std_path();
    let place = metadata.target_directory.join("scan").into_std_path_buf();
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let tool = python::tool(root, &place)?;

    if !cargo::succeeds(&mut cargo::command(root, ["build", "-p", "dlock"]))? {
        say::line(format_args!("dlock could not be built, so nothing was scanned"));
        return Ok(false);
    }
    let binary = format!("dlock{}", std::env::consts::EXE_SUFFIX);
    let binary = metadata.target_directory.join("debug").join(binary).into_std_path_buf();
    let server = server::Server::start(&binary, &place)?;
    let counted = place.join("counts");
    // Those of an earlier scan say nothing about this one.
    let _ = fs::remove_file(&counted);
    let mut scan = Command::new(tool);
    scan.arg("--config-file").arg(root.join("xtask/scan/schemathesis.toml"));
    scan.arg("run").arg(root.join("openapi.json")).args(arguments(server.url()));
    scan.env("SCHEMATHESIS_HOOKS", root.join("xtask/scan/hooks.py"))
        .env("SCAN_COUNTS", &counted)
        // No proxy stands between two processes of one machine.
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .current_dir(&place);
    let clean = cargo::succeeds(&mut scan)?;
    let ended = server.stop()?;

    say::line(format_args!("\nanswers of each route:"));
    let counts = counts::read(&fs::read_to_string(&counted).unwrap_or_default());
    for route in &counts {
        say::line(format_args!("  {route}"));
    }
    let cases: u64 = counts.iter().map(counts::Route::cases).sum();
    say::line(format_args!("elapsed {:.1} s", watch.seconds()));
    if !ended {
        say::line(format_args!("the server did not end well: see {}", place.display()));
    }
    let all_well = clean && ended && cases > 0;
    let verdict = if all_well { "nothing was found" } else { "something was found, see above" };
    say::line(format_args!("{cases} answers of {} routes: {verdict}", counts.len()));
    Ok(all_well)
}

/// What the tool is told besides the description.
fn arguments(url: &str) -> Vec<&str> {
    let mut arguments = vec!["--url", url, "--workers", "1", "--seed", SEED];
    arguments.extend(["--phases", "examples,coverage,fuzzing,stateful"]);
    arguments.extend(["--checks", "all", "--exclude-checks", EXCLUDED]);
    arguments.extend(["--continue-on-failure", "--request-timeout", PATIENCE]);
    // It remembers nothing of earlier scans, and leaves nothing for later ones.
    arguments.extend(["--generation-database", "none", "--no-color"]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_checks_are_made_but_one_by_one_worker_with_one_seed() {
        let line = arguments("http://127.0.0.1:1").join(" ");
        for part in [
            "--url http://127.0.0.1:1 ",
            "--workers 1 --seed 7420 ",
            "--checks all --exclude-checks positive_data_acceptance ",
            "stateful",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}
