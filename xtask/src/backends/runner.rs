//! What cargo starts test programs through: `cargo xtask run-test PROGRAM ARGS`.
//!
//! Nearly all are started as they are. What runs on a server waits for leases, leaders and commits most
//! of its time, so it gets more threads than there are processors. What calls a store directly runs
//! once for each version of its server; what it has to do with HTTP is the same on every version, and
//! what starts servers of its own sees to the versions itself.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use super::choice::Server;
use crate::parity::results;
use crate::{cargo, say};

/// The verb that cargo is told to start tests with.
pub const VERB: &str = "run-test";

/// The variable with the servers that the suites are to be run on, one after the other.
#[must_use]
pub const fn runs(server: Server) -> &'static str {
    match server {
        Server::Etcd => "XTASK_RUNS_ETCD",
        Server::Postgres => "XTASK_RUNS_POSTGRES",
    }
}

/// A test program that runs on a server.
#[derive(Debug)]
struct Suite {
    server: Server,
    package: &'static str,
    program: &'static str,
    /// How many of its tests run at once.
    threads: &'static str,
    /// Whether it runs once for each version.
    again: bool,
}

const SUITES: &[Suite] = &[
    suite(Server::Etcd, "dlock-conformance", "etcd", "12", true),
    suite(Server::Etcd, "dlock-conformance", "service_etcd", "12", true),
    suite(Server::Etcd, "dlock-conformance", "http_etcd", "12", false),
    suite(Server::Etcd, "dlock-etcd", "seeds", "6", true),
    suite(Server::Etcd, "dlock-etcd", "clusters", "5", false),
    suite(Server::Etcd, "dlock-model", "etcd", "12", true),
    suite(Server::Postgres, "dlock-conformance", "postgres", "10", true),
    suite(Server::Postgres, "dlock-conformance", "postgres_pooled", "10", false),
    suite(Server::Postgres, "dlock-conformance", "service_postgres", "10", true),
    suite(Server::Postgres, "dlock-conformance", "service_postgres_pooled", "10", false),
    suite(Server::Postgres, "dlock-conformance", "http_postgres", "10", false),
    suite(Server::Postgres, "dlock-conformance", "http_postgres_pooled", "10", false),
    suite(Server::Postgres, "dlock-postgres", "traps", "4", true),
    suite(Server::Postgres, "dlock-postgres", "volume", "4", true),
    suite(Server::Postgres, "dlock-model", "postgres", "10", false),
];

const fn suite(
    server: Server,
    package: &'static str,
    program: &'static str,
    threads: &'static str,
    again: bool,
) -> Suite {
    Suite { server, package, program, threads, again }
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
    let told = std::env::var(runs(suite.server)).unwrap_or_default();
    let mut all = true;
    let (mut first, mut any) = (true, false);
    for (version, addresses) in versions(&told).take(if suite.again { usize::MAX } else { 1 }) {
        let on = format!("{} {version}", suite.server);
        if !first {
            say::line(format_args!("     Again on {on}"));
        }
        announce(&package, program, &on)?;
        command.envs(suite.server.variables().iter().zip(addresses));
        all &= cargo::succeeds(&mut command)?;
        (first, any) = (false, true);
    }
    if !any {
        // On what the environment names, of whichever version that is.
        announce(&package, program, "")?;
        all = cargo::succeeds(&mut command)?;
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

/// The versions and their addresses in a text such as `15=a|b 17=c|d`, as [`told`] writes it.
fn versions(runs: &str) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
    runs.split_whitespace()
        .filter_map(|run| run.split_once('='))
        .map(|(version, addresses)| (version, addresses.split('|')))
}

/// One run as the variable has it: a version and its addresses with blanks between.
#[must_use]
pub fn told(version: &str, addresses: &str) -> String {
    format!("{version}={}", addresses.split_whitespace().collect::<Vec<_>>().join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_on_servers_are_known_by_package_and_name() {
        let again = |package: &str, program: &str| {
            suite_of(package, &Path::new("target/debug/deps").join(program)).map(|s| s.again)
        };
        assert_eq!(again("dlock-conformance", "etcd-0a1b"), Some(true));
        assert_eq!(again("dlock-conformance", "http_etcd-0a1b"), Some(false));
        assert_eq!(again("dlock-model", "etcd-0a1b"), Some(true));
        assert_eq!(again("dlock-conformance", "postgres-0a1b"), Some(true));
        assert_eq!(again("dlock-etcd", "seeds-0a1b"), Some(true));
        for other in ["embedded-0a1b", "etcd_like-0a1b", "fetcd-0a1b"] {
            assert_eq!(again("dlock-conformance", other), None, "{other}");
        }
        assert_eq!(again("dlock-e2e", "etcd-0a1b"), None);
    }

    #[test]
    fn runs_are_read_as_they_are_told() {
        let text = [told("15", "postgres://a/?b=c postgres://d"), told("17", "e")].join(" ");
        let read: Vec<(&str, Vec<&str>)> =
            versions(&text).map(|(version, addresses)| (version, addresses.collect())).collect();
        let first = ("15", vec!["postgres://a/?b=c", "postgres://d"]);
        assert_eq!(read, [first, ("17", vec!["e"])]);
        assert_eq!(versions("").count(), 0);
    }
}
