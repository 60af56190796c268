//! The servers that tests run on: what is there, and making sure of it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`facts`] | what this machine has; the only place that looks |
//! | [`choice`] | which of it is taken for a version, in which order; what to do where there is none |
//! | [`images`] | the images, and building them from Debian's packages |
//! | [`unpack`] | a server of another Debian, where no engine would run it |
//! | [`shared`] | the one server of each version that all suites share |
//! | [`runner`] | what cargo starts test programs through: suites on servers run once a version |
//! | [`orphans`] | who ends the tests when this tool is killed |
//!
//! # What stays true
//! - Order: what the environment says, what is installed, containers; where there is no engine, as
//!   root installing the package, and unpacking another Debian's.
//! - Nothing is skipped in silence: what a machine cannot have is left out by name and said last.
//! - Where a container engine is there nothing is left out: what is missing then fails.

pub mod choice;
pub mod facts;
pub mod images;
pub mod orphans;
pub mod runner;
pub mod shared;
pub mod unpack;

use std::process::Command;

use crate::say;
use choice::{Choice, Server, Version};
use facts::Facts;

/// What tests are run with.
#[derive(Debug, Default)]
pub struct Backends {
    /// Variables for the tests.
    pub env: Vec<(String, String)>,
    /// Parts of the names of tests that this machine cannot run.
    pub left_out: Vec<&'static str>,
    /// What the reader of the run has to know, one a line.
    pub remarks: Vec<String>,
    /// The versions that can be started.
    pub versions: Vec<Version>,
}

/// Prints what there is and how it was found, and starts and makes nothing; whether any version of
/// any server can be had.
pub fn print() -> bool {
    let facts = Facts::look();
    for version in Version::ALL {
        let choice = choice::choose(version, &facts);
        say::line(format_args!("{version}: {}", choice.said(version, &facts)));
    }
    let pooler = if facts.pgbouncer { "is there" } else { "is not there: install pgbouncer" };
    say::line(format_args!("PgBouncer: {pooler}"));
    let engine = if facts.engine { "docker answers" } else { "none: docker is not there" };
    say::line(format_args!("container engine: {engine}"));
    for (image, there) in facts.rows() {
        let there = if there { "is there" } else { "is not there: `cargo xtask images` builds it" };
        say::line(format_args!("image {}: {there}", image.image));
    }
    for server in Server::ALL {
        for variable in server.variables() {
            match facts.var(variable) {
                Some(told) => say::line(format_args!("suites run on {variable} = {told}")),
                None => say::line(format_args!(
                    "suites run on each {server} above: {variable} is not set"
                )),
            }
        }
    }
    Version::ALL.into_iter().any(|version| choice::choose(version, &facts) != Choice::None)
}

/// Makes sure of what tests need, as far as this machine lets it.
#[must_use]
pub fn make_sure() -> Backends {
    let mut remarks = Vec::new();
    let mut facts = Facts::look();
    if facts.engine
        && let Err(error) = images::build_missing(&facts)
    {
        remarks.push(format!("IMAGES: {error:#}"));
    }
    facts = Facts::look();
    for server in Server::ALL {
        if lacks(server, &facts) && facts.can_install() {
            if let Err(error) = install_server(server) {
                remarks.push(format!("PACKAGES: {error:#}"));
            }
            facts = Facts::look();
        }
    }
    for version in Version::ALL.into_iter().filter(|version| version.server() == Server::Etcd) {
        let none = choice::choose(version, &facts) == Choice::None;
        if none && facts.apt && !facts.engine {
            if let Err(error) = unpack::etcd(version.number()) {
                remarks.push(format!("PACKAGES: {version} cannot be unpacked: {error:#}"));
            }
            facts = Facts::look();
        }
    }
    let mut backends = settle(&facts);
    remarks.append(&mut backends.remarks);
    Backends { remarks, ..backends }
}

/// Whether Debian's own package of a server would help: none is installed and some version is missing,
/// or the pooler is.
fn lacks(server: Server, facts: &Facts) -> bool {
    let of = |version: &Version| version.server() == server;
    let installed = facts.installed.keys().any(of);
    let missing = Version::ALL.iter().any(|v| of(v) && choice::choose(*v, facts) == Choice::None);
    (!installed && missing) || (server == Server::Postgres && !facts.pgbouncer)
}

/// Installs a server, and stops what Debian starts then: tests start their own.
fn install_server(server: Server) -> anyhow::Result<()> {
    install(server.packages())?;
    for service in server.services() {
        let stopped = Command::new("service").args([service, "stop"]).output();
        if let Err(error) = stopped {
            say::line(format_args!("{service} cannot be stopped: {error}"));
        }
    }
    Ok(())
}

/// What the tests are run with, given what there is.
fn settle(facts: &Facts) -> Backends {
    let mut backends = Backends::default();
    for version in Version::ALL {
        let choice = choice::choose(version, facts);
        let said = choice.said(version, facts);
        if let Some(value) = choice.value() {
            backends.env.push((version.variable().to_owned(), value));
            backends.versions.push(version);
            say::line(format_args!("{version}: {said}"));
        } else if facts.engine {
            backends.remarks.push(format!("{version} IS MISSING: {said}"));
        } else {
            backends.left_out.push(version.mark());
            backends.remarks.push(format!("NOT TESTED: {version}: {said}"));
        }
        if let Some(image) = choice::image(version, facts) {
            backends.env.push((version.image_variable().to_owned(), image));
        }
    }
    for server in Server::ALL {
        // Nothing to run on is a failure of every test that needs it, and no reason to leave it out.
        if backends.versions.iter().all(|version| version.server() != server) {
            let marks: Vec<_> = Version::ALL.into_iter().filter(|v| v.server() == server).collect();
            backends.left_out.retain(|mark| marks.iter().all(|version| version.mark() != *mark));
        }
    }
    if !facts.pgbouncer {
        backends.remarks.push("PgBouncer IS MISSING: install pgbouncer".into());
    }
    if !facts.engine {
        backends.left_out.push("in_a_container");
        backends.remarks.push(
            "NOT TESTED: servers in containers: docker is not there or answers nobody".into(),
        );
    }
    backends
}

/// Installs Debian packages. Only as root, and only where nothing else does.
fn install(packages: &[&str]) -> anyhow::Result<()> {
    say::line(format_args!("installing: {}", packages.join(" ")));
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(args).args(["-q", "-y"]);
        crate::cargo::printed(&mut command)
    };
    apt(&["update"])?;
    apt(&[&["install", "--no-install-recommends"], packages].concat())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var<'a>(backends: &'a Backends, name: &str) -> Option<&'a str> {
        let pair = backends.env.iter().find(|(other, _)| other == name);
        pair.map(|(_, value)| value.as_str())
    }

    fn old_ones() -> Facts {
        let etcd = (Version::Etcd34, "etcd".to_owned());
        let postgres = (Version::Postgres15, "/p/15/bin".to_owned());
        Facts { installed: [etcd, postgres].into(), pgbouncer: true, ..Facts::default() }
    }

    #[test]
    fn without_an_engine_what_cannot_be_had_is_left_out_and_said() {
        let backends = settle(&old_ones());
        assert_eq!(var(&backends, "TEST_DLOCK_ETCD_OLD"), Some("etcd"));
        assert_eq!(var(&backends, "TEST_DLOCK_ETCD_NEW"), None);
        assert_eq!(var(&backends, "TEST_DLOCK_POSTGRES_OLD"), Some("/p/15/bin"));
        assert_eq!(backends.left_out, ["new_etcd", "new_postgres", "in_a_container"]);
        assert_eq!(backends.remarks.len(), 3, "{:?}", backends.remarks);
        assert_eq!(backends.versions, [Version::Etcd34, Version::Postgres15]);
    }

    #[test]
    fn with_an_engine_nothing_is_left_out() {
        let facts = Facts { engine: true, ..old_ones() };
        let backends = settle(&facts);
        assert!(backends.left_out.is_empty());
        assert!(backends.remarks[0].starts_with("etcd 3.5 IS MISSING"), "{:?}", backends.remarks);

        let images = images::all().into_iter().map(|image| image.image).collect();
        let backends = settle(&Facts { images, ..facts });
        let new = "image:dlock-test-etcd:3.5";
        assert_eq!(var(&backends, "TEST_DLOCK_ETCD_NEW"), Some(new));
        assert_eq!(var(&backends, "TEST_DLOCK_ETCD_NEW_IMAGE"), Some(new));
        assert_eq!(var(&backends, "TEST_DLOCK_ETCD_OLD"), Some("etcd"));
        let old = "image:dlock-test-etcd:3.4";
        assert_eq!(var(&backends, "TEST_DLOCK_ETCD_OLD_IMAGE"), Some(old));
        let new = "image:dlock-test-postgres:17";
        assert_eq!(var(&backends, "TEST_DLOCK_POSTGRES_NEW"), Some(new));
        assert!(backends.remarks.is_empty());
    }

    #[test]
    fn where_there_is_nothing_at_all_the_tests_fail_rather_than_pass() {
        let backends = settle(&Facts::default());
        assert_eq!(backends.left_out, ["in_a_container"]);
        assert!(backends.env.is_empty() && backends.versions.is_empty());
        assert!(backends.remarks.iter().any(|remark| remark.starts_with("PgBouncer IS MISSING")));
    }

    #[test]
    fn what_is_missing_is_installed_and_nothing_else() {
        assert!(!lacks(Server::Etcd, &old_ones()) && !lacks(Server::Postgres, &old_ones()));
        assert!(lacks(Server::Etcd, &Facts::default()));
        assert!(lacks(Server::Postgres, &Facts { pgbouncer: false, ..old_ones() }));
    }
}
