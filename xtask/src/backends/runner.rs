//! What cargo starts test programs through: `cargo xtask run-test PROGRAM ARGS`.
//!
//! Nearly all are started as they are. The suites on etcd wait for leases most of their time, so
//! they get more threads than there are processors. Those that call the store directly run once for
//! each version of etcd; what they have to do with HTTP is the same on every version.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::choice::ENDPOINTS;
use crate::{cargo, say};

/// The verb that cargo is told to start tests with.
pub const VERB: &str = "run-test";

/// Further clusters that the suites are to be run on, as `version=endpoints`, with blanks between.
pub const AGAIN: &str = "XTASK_ETCD_AGAIN";

/// How many tests of a suite that waits are run at once.
const THREADS: &str = "12";

/// What the names of suites over HTTP begin with.
const OVER_HTTP: &str = "http_";

/// The package that the suites are in.
const SUITES: &str = "dlock-conformance";

/// Runs a test program; whether it succeeded every time.
///
/// # Errors
/// If it cannot be started.
pub fn run(args: &[String]) -> anyhow::Result<bool> {
    let Some((program, args)) = args.split_first() else { bail!("no program to run is named") };
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(args);
    if !(package == SUITES && is_etcd_suite(Path::new(program))) {
        // Comes back only if it cannot be started.
        return Err(command.exec()).with_context(|| format!("cannot start {program}"));
    }
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", THREADS);
    }
    let mut all = cargo::succeeds(&mut command)?;
    let again = std::env::var(AGAIN).unwrap_or_default();
    for (version, endpoints) in further(&again).filter(|_| runs_again(Path::new(program))) {
        say::line(format_args!("     Again on etcd {version}"));
        all &= cargo::succeeds(command.env(ENDPOINTS, endpoints))?;
    }
    Ok(all)
}

/// Whether a test program is a suite on etcd: its name ends so.
fn is_etcd_suite(program: &Path) -> bool {
    let name = name_of(program);
    name == "etcd" || name.ends_with("_etcd")
}

/// Whether an etcd suite runs once for each version.
fn runs_again(program: &Path) -> bool {
    !name_of(program).starts_with(OVER_HTTP)
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
    fn suites_on_etcd_are_known_by_their_names() {
        for name in ["etcd-0a1b", "service_etcd-0a1b", "http_etcd-0a1b"] {
            assert!(is_etcd_suite(&Path::new("target/debug/deps").join(name)), "{name}");
        }
        for name in ["embedded-0a1b", "etcd_like-0a1b", "fetcd-0a1b", "dlock_etcd2-0a1b"] {
            assert!(!is_etcd_suite(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn suites_over_http_run_once() {
        assert!(runs_again(Path::new("a/etcd-0a1b")) && runs_again(Path::new("service_etcd-0a1b")));
        assert!(!runs_again(Path::new("a/http_etcd-0a1b")));
    }

    #[test]
    fn further_clusters_are_read() {
        let pairs: Vec<_> = further("3.5=http://a,http://b 3.6=http://c").collect();
        assert_eq!(pairs, [("3.5", "http://a,http://b"), ("3.6", "http://c")]);
        assert_eq!(further("").count(), 0);
    }
}
