//! A server of another Debian, unpacked below the target folder: where no engine runs it in a
//! container, and nothing need be installed for it.
//!
//! apt is given lists and a cache of its own, so that neither this machine's are touched nor its
//! root is needed. A program that does not run on this machine's libraries is not taken.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::images::{self, Image};
use crate::{cargo, say};

/// Whom the packages have to be signed by.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where an unpacked program is, or would be: beside the folder that this tool was built into.
#[must_use]
pub fn place(version: &str) -> Option<PathBuf> {
    let me = std::env::current_exe().ok()?;
    Some(me.parent()?.parent()?.join("servers").join(format!("etcd-{version}")))
}

/// Downloads and unpacks the etcd of an image's suite to its place.
///
/// # Errors
/// If the packages cannot be reached, or the program does not run here.
pub fn etcd(version: &str) -> anyhow::Result<()> {
    let image = images::of(&format!("etcd {version}")).context("no Debian is named for it")?;
    let place = place(version).context("this program cannot be found")?;
    let servers = place.parent().context("it has no folder")?;
    say::line(format_args!("unpacking {} of Debian {}", image.package, image.suite));
    fs::create_dir_all(servers)?;
    let folder = tempfile::tempdir_in(servers)?;
    let program = unpacked(&image, folder.path())?;
    cargo::printed(Command::new(&program).arg("--version")).context("it does not run here")?;
    fs::rename(program, place)?;
    Ok(())
}

fn unpacked(image: &Image, folder: &Path) -> anyhow::Result<PathBuf> {
    let source = images::source().context("no source of Debian's packages is known here")?;
    fs::create_dir_all(folder.join("lists/partial"))?;
    fs::create_dir_all(folder.join("cache/archives/partial"))?;
    fs::write(folder.join("sources"), line(&source, &image.suite))?;
    let options = options(folder);
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        cargo::printed(command.current_dir(folder).args(&options).args(args))
    };
    apt(&["-q", "update"])?;
    apt(&["-q", "download", &image.package])?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
    let files = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let package = files.into_iter().find(is_package).context("no package came")?;
    let root = folder.join("root");
    cargo::printed(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&root))?;
    let program = root.join("usr/bin/etcd");
    ensure!(program.is_file(), "there is no etcd in the package");
    Ok(program)
}

fn line(source: &str, suite: &str) -> String {
    format!("deb [signed-by={KEYS}] {source} {suite} main\n")
}

/// What keeps apt within a folder.
fn options(folder: &Path) -> Vec<String> {
    let at = |name: &str, path: &str| format!("{name}={}", folder.join(path).display());
    let settings = [
        at("Dir::State::lists", "lists"),
        at("Dir::Cache", "cache"),
        at("Dir::Etc::sourcelist", "sources"),
        "Dir::Etc::sourceparts=-".to_owned(),
        // Nobody else may look into the folder, apt's own user included.
        "APT::Sandbox::User=".to_owned(),
    ];
    settings.into_iter().flat_map(|setting| ["-o".to_owned(), setting]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_is_kept_within_the_folder() {
        let options = options(Path::new("/f")).join(" ");
        for kept in ["lists=/f/lists", "Cache=/f/cache", "sourcelist=/f/sources", "sourceparts=-"] {
            assert!(options.contains(kept), "{options}");
        }
        let line = line("http://d/debian/", "trixie");
        assert!(line.contains("signed-by=") && line.ends_with(" http://d/debian/ trixie main\n"));
    }

    #[test]
    fn each_version_has_a_place_below_the_target_folder() {
        let place = place("3.5").unwrap();
        assert!(place.ends_with("servers/etcd-3.5"), "{place:?}");
    }
}
