//! What cargo starts test programs through: `cargo xtask run-test PROGRAM ARGS`.
//!
//! Nearly all are started as they are. What runs on etcd waits for leases and leaders most of its time,
//! so it gets more threads than there are processors. What calls the store directly runs once for each
//! version of etcd; what it has to do with HTTP is the same on every version, and what starts clusters
//! of its own sees to the versions itself.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::choice::ENDPOINTS;
use crate::parity::results;
use crate::{cargo, say};

/// The verb that cargo is told to start tests with.
pub const VERB: &str = "run-test";

/// Further clusters that the suites are to be run on, as `version=endpoints`, with blanks between.
pub const AGAIN: &str = "XTASK_ETCD_AGAIN";

/// The version of the first cluster.
pub const FIRST: &str = "XTASK_ETCD_FIRST";

/// A test program that runs on etcd.
#[derive(Debug)]
struct Suite {
    package: &'static str,
    program: &'static str,
    /// How many of its tests run at once.
    threads: &'static str,
    /// Whether it runs once for each version.
    again: bool,
}

const SUITES: &[Suite] = &[
    suite("dlock-conformance", "etcd", "12", true),
    suite("dlock-conformance", "service_etcd", "12", true),
    suite("dlock-conformance", "http_etcd", "12", false),
    suite("dlock-etcd", "seeds", "6", true),
    suite("dlock-etcd", "clusters", "5", false),
    suite("dlock-model", "etcd", "12", true),
];

const fn suite(
    package: &'static str,
    program: &'static str,
    threads: &'static str,
    again: bool,
) -> Suite {
    Suite { package, program, threads, again }
}

/// Runs a test program; whether it succeeded every time.
///
/// # Errors
/// If it cannot be started.
pub fn run(args: &[String]) -> anyhow::Result<bool> {
    let Some((program, args)) = args.split_first() else { bail!("no program to run is named") };
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(args);
    let Some(suite) = suite_of(&package, Path::new(program)) else {
        announce(&package, program, "")?;
        // Comes back only if it cannot be started.
        return Err(command.exec()).with_context(|| format!("cannot start {program}"));
    };
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", suite.threads);
    }
    let first = std::env::var(FIRST).map(|version| format!("etcd {version}"));
    announce(&package, program, &first.unwrap_or_default())?;
    let mut all = cargo::succeeds(&mut command)?;
    let again = std::env::var(AGAIN).unwrap_or_default();
    for (version, endpoints) in further(&again).filter(|_| suite.again) {
        say::line(format_args!("     Again on etcd {version}"));
        announce(&package, program, &format!("etcd {version}"))?;
        all &= cargo::succeeds(command.env(ENDPOINTS, endpoints))?;
    }
    Ok(all)
}

/// Says whose results and notes come next, for the parity page.
fn announce(package: &str, program: &str, on: &str) -> anyhow::Result<()> {
    if package != results::PACKAGE {
        return Ok(());
    }
    let heading = results::heading(name_of(Path::new(program)), on);
    say::line(format_args!("{heading}"));
    let Some(notes) = std::env::var_os(results::NOTES) else { return Ok(()) };
    let mut notes = OpenOptions::new().append(true).create(true).open(notes)?;
    writeln!(notes, "{heading}").context("the notes cannot be written")
}

/// The suite that a package's test program is, if it is one.
fn suite_of(package: &str, program: &Path) -> Option<&'static Suite> {
    let name = name_of(program);
    SUITES.iter().find(|suite| suite.package == package && suite.program == name)
}

/// The name of a test program, without cargo's number.
fn name_of(program: &Path) -> &str {
    let stem = program.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    stem.rsplit_once('-').map_or(stem, |(name, _)| name)
}

fn further(again: &str) -> impl Iterator<Item = (&str, &str)> {
    again.split_whitespace().filter_map(|pair| pair.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_on_etcd_are_known_by_package_and_name() {
        let again = |package: &str, program: &str| {
            suite_of(package, &Path::new("target/debug/deps").join(program)).map(|s| s.again)
        };
        assert_eq!(again("dlock-conformance", "etcd-0a1b"), Some(true));
        assert_eq!(again("dlock-conformance", "http_etcd-0a1b"), Some(false));
        assert_eq!(again("dlock-model", "etcd-0a1b"), Some(true));
        assert_eq!(again("dlock-etcd", "seeds-0a1b"), Some(true));
        for other in ["embedded-0a1b", "etcd_like-0a1b", "fetcd-0a1b"] {
            assert_eq!(again("dlock-conformance", other), None, "{other}");
        }
        assert_eq!(again("dlock-e2e", "etcd-0a1b"), None);
    }

    #[test]
    fn further_clusters_are_read() {
        let pairs: Vec<_> = further("3.5=http://a,http://b 3.6=http://c").collect();
        assert_eq!(pairs, [("3.5", "http://a,http://b"), ("3.6", "http://c")]);
        assert_eq!(further("").count(), 0);
    }
}
