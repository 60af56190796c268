//! The images that servers are started from, and building them from Debian's packages.
//!
//! debootstrap makes a small Debian in a folder, and the engine takes the folder in: no registry
//! and no builder is asked for anything.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use super::choice::Version;
use super::facts::Facts;
use crate::stopwatch::Stopwatch;
use crate::{cargo, graph, say};

/// The one file that names them.
const IMAGES: &str = include_str!("../../images.txt");

/// What need not be in an image.
const LEFT_OUT: &[&str] = &[
    "./dev",
    "./proc",
    "./sys",
    "./usr/share/doc",
    "./usr/share/locale",
    "./usr/share/man",
    "./var/cache/apt",
    "./var/lib/apt/lists",
];

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The server in it and its version.
    pub server: String,
    /// Its name and tag.
    pub image: String,
    /// The Debian it is made of.
    pub suite: String,
    /// The package that the server is in.
    pub package: String,
}

/// All images, in the order of the file.
#[must_use]
pub fn all() -> Vec<Image> {
    IMAGES.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect()
}

/// The image of a server.
#[must_use]
pub fn of(server: &str) -> Option<Image> {
    all().into_iter().find(|image| image.server == server)
}

fn row(line: &str) -> Option<Image> {
    let mut cells = line.split('|').map(|cell| cell.trim().to_owned());
    Some(Image {
        server: cells.next()?,
        image: cells.next()?,
        suite: cells.next()?,
        package: cells.next()?,
    })
}

/// Builds the images that are not there, and prints how the tests are told of each; whether all of
/// them are there then.
///
/// # Errors
/// What is missing for it, in words.
pub fn run() -> anyhow::Result<bool> {
    let facts = Facts::look();
    ensure!(facts.engine, "docker is not there, or answers nobody: install it and start it first");
    build_missing(&facts)?;
    let facts = Facts::look();
    for (image, there) in facts.rows() {
        let there = if there { "there" } else { "NOT there" };
        say::line(format_args!("{}: image:{} is {there}", image.server, image.image));
    }
    Ok(facts.rows().all(|(_, there)| there))
}

/// Builds the images that are not there and that nobody else named in their place.
///
/// # Errors
/// What is missing for it, or what went wrong with the first that was not built.
pub fn build_missing(facts: &Facts) -> anyhow::Result<()> {
    let told = |image: &Image| {
        let mut versions = Version::ALL.into_iter();
        let version = versions.find(|version| image.server == version.to_string());
        version.is_some_and(|version| facts.var(version.image_variable()).is_some())
    };
    let missing = facts.rows().filter(|(image, there)| !there && !told(image));
    let missing: Vec<_> = missing.map(|(image, _)| image).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !facts.debootstrap {
        if facts.can_install() {
            super::install(&["debootstrap"])?;
        } else {
            bail!(
                "{} can be built only by root with debootstrap: install that and run `cargo xtask \
                 images` as root, or give another image that name with `docker tag`",
                missing.iter().map(|image| image.image.as_str()).collect::<Vec<_>>().join(", ")
            );
        }
    }
    ensure!(facts.root, "images are built as root: run `sudo cargo xtask images`");
    let metadata = graph::metadata()?;
    let target = metadata.target_directory.as_std_path();
    // At once: most of the time is spent on the network and the disk.
    let built: Vec<_> = std::thread::scope(|scope| {
        let build = |image| move || build(image, target);
        let threads: Vec<_> = missing.iter().map(|image| scope.spawn(build(image))).collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    for (image, built) in missing.iter().zip(built) {
        let built = built.unwrap_or_else(|_| Err(anyhow::anyhow!("building it panicked")));
        built.with_context(|| format!("{} is not built", image.image))?;
    }
    Ok(())
}

/// Builds one, in a folder below the target folder that is gone afterwards.
fn build(image: &Image, target: &Path) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    say::line(format_args!("building {} from Debian {}", image.image, image.suite));
    std::fs::create_dir_all(target)?;
    let folder = tempfile::Builder::new().prefix("image-").tempdir_in(target)?;
    let root = folder.path().join("root");
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={}", image.package), &image.suite]);
    debootstrap.arg(&root).args(source());
    cargo::printed(&mut debootstrap)?;
    import(&root, &image.image)?;
    say::line(format_args!("built {} in {:.0} s", image.image, watch.seconds()));
    Ok(())
}

/// Packs a folder up and lets the engine take it in.
fn import(root: &Path, name: &str) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(root).arg("-c");
    tar.args(LEFT_OUT.iter().map(|path| format!("--exclude={path}/*"))).arg(".");
    let mut tar = tar.stdout(Stdio::piped()).spawn().context("tar cannot be started")?;
    let mut docker = Command::new("docker");
    docker.args(["import", "-", name]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut docker = docker.spawn().context("docker cannot be started")?;
    if let (Some(mut from), Some(mut to)) = (tar.stdout.take(), docker.stdin.take()) {
        io::copy(&mut from, &mut to)?;
    }
    let (tar, docker) = (tar.wait()?, docker.wait()?);
    ensure!(tar.success() && docker.success(), "the engine does not take it in");
    Ok(())
}

/// Where this machine's own packages come from, if it is a Debian.
pub(super) fn source() -> Option<String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(COMPONENT)"]);
    source_in(&cargo::printed(&mut apt).ok()?)
}

/// The first source of Debian itself: security updates are another origin's name in the path.
fn source_in(targets: &str) -> Option<String> {
    let is_debian = |line: &&str| {
        let mut words = line.split(' ');
        let path = words.next().unwrap_or_default();
        path.trim_end_matches('/').ends_with("/debian") && words.next() == Some("Debian")
    };
    targets.lines().find(is_debian)?.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_an_image_of_each_version() {
        assert_eq!(all().len(), Version::ALL.len());
        for version in Version::ALL {
            let image = of(&version.to_string()).unwrap();
            assert!(image.image.ends_with(&format!(":{}", version.number())), "{image:?}");
            assert!(!image.package.is_empty());
        }
        assert_eq!(of("etcd 3.6"), None);
    }

    #[test]
    fn packages_come_from_where_this_machine_has_them_from() {
        let targets = "http://a/debian-security/ Debian main\nhttp://b/x/debian Other main\n\
                       http://c/debian/ Debian main\n";
        assert_eq!(source_in(targets).as_deref(), Some("http://c/debian/"));
        assert_eq!(source_in("http://a/ubuntu/ Ubuntu main\n"), None);
    }

    #[test]
    fn who_cannot_build_is_told_what_to_do() {
        let facts = Facts { engine: true, ..Facts::default() };
        let said = build_missing(&facts).unwrap_err().to_string();
        assert!(said.contains("dlock-test-etcd:3.5") && said.contains("as root"), "{said}");
        let there = all().into_iter().map(|image| image.image).collect();
        assert!(build_missing(&Facts { images: there, ..facts }).is_ok(), "nothing to build");
        let named = Version::ALL.map(|version| version.image_variable().to_owned());
        let env = named.map(|name| (name, "image:mine:1".to_owned())).into();
        let facts = Facts { engine: true, env, ..Facts::default() };
        assert!(build_missing(&facts).is_ok(), "others are named in their place");
        assert!(super::super::choice::image(Version::Etcd35, &facts).is_some());
    }
}
