//! What this machine has; the only place that looks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::choice::{Server, Version};
use super::images::{self, Image};
use super::unpack;

/// What was found.
#[derive(Debug, Default)]
pub struct Facts {
    /// The variables of tests.
    pub env: BTreeMap<String, String>,
    /// What is installed, as the tests are told of it.
    pub installed: BTreeMap<Version, String>,
    /// Whether PgBouncer is.
    pub pgbouncer: bool,
    /// Programs that were unpacked, by version.
    pub unpacked: BTreeMap<Version, PathBuf>,
    /// Whether a container engine answers.
    pub engine: bool,
    /// Those of our images that are there.
    pub images: BTreeSet<String>,
    /// Whether this is root.
    pub root: bool,
    /// Whether packages of Debian can be installed.
    pub apt: bool,
    /// Whether a Debian can be made in a folder.
    pub debootstrap: bool,
}

impl Facts {
    /// Looks, and changes nothing.
    #[must_use]
    pub fn look() -> Self {
        let engine = answers("docker", &["version", "--format", "{{.Server.Version}}"]);
        let there = |image: &Image| answers("docker", &["image", "inspect", &image.image]);
        let images = images::all().into_iter().filter(|image| engine && there(image));
        let vars = std::env::vars().filter(|(name, _)| name.starts_with("TEST_DLOCK_"));
        let etcds = Version::ALL.into_iter().filter(|version| version.server() == Server::Etcd);
        let unpacked = etcds.filter_map(|version| {
            let place = unpack::place(version.number())?;
            place.is_file().then_some((version, place))
        });
        Self {
            env: vars.collect(),
            installed: installed_etcd().into_iter().chain(installed_postgres()).collect(),
            pgbouncer: answers("pgbouncer", &["--version"])
                || answers("/usr/sbin/pgbouncer", &["--version"]),
            unpacked: unpacked.collect(),
            engine,
            images: images.map(|image| image.image).collect(),
            root: rustix::process::geteuid().is_root(),
            apt: answers("apt-get", &["--version"]),
            debootstrap: answers("debootstrap", &["--version"]),
        }
    }

    /// A variable.
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// Whether packages may be installed.
    #[must_use]
    pub fn can_install(&self) -> bool {
        self.root && self.apt
    }

    /// All images, and whether each is there.
    pub fn rows(&self) -> impl Iterator<Item = (Image, bool)> {
        images::all().into_iter().map(|image| {
            let there = self.images.contains(&image.image);
            (image, there)
        })
    }
}

/// The installed etcd.
fn installed_etcd() -> Option<(Version, String)> {
    let number = said("etcd", &["--version"]).and_then(|text| version_in(&text))?;
    Some((Version::of(Server::Etcd, &number)?, "etcd".to_owned()))
}

/// The folders of programs of the installed PostgreSQLs, where Debian puts them.
fn installed_postgres() -> Vec<(Version, String)> {
    let Ok(folder) = std::fs::read_dir("/usr/lib/postgresql") else { return Vec::new() };
    let versions = folder.flatten().filter_map(|entry| {
        let programs = entry.path().join("bin");
        let version = Version::of(Server::Postgres, entry.file_name().to_str()?)?;
        programs.join("postgres").is_file().then(|| (version, programs.display().to_string()))
    });
    versions.collect()
}

/// What a program prints, if there is one and it succeeds.
fn said(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn answers(program: &str, args: &[&str]) -> bool {
    said(program, args).is_some()
}

/// The number in what `etcd --version` prints.
fn version_in(said: &str) -> Option<String> {
    said.lines().find_map(|line| line.strip_prefix("etcd Version: ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_etcd_prints() {
        let said = "etcd Version: 3.4.23\nGit SHA: Not provided\nGo Version: go1.19.8\n";
        assert_eq!(version_in(said).as_deref(), Some("3.4.23"));
        assert_eq!(version_in("etcdctl version: 3.4.23\n"), None);
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_does_not_answer() {
        assert!(answers("true", &[]));
        assert!(!answers("false", &[]) && !answers("no-such-program-here", &[]));
    }
}
