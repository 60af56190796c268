//! What the rules look at: every text file of the checkout, and the dependency graph.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::cargo;
use crate::finding::Finding;
use crate::graph::{self, Graph, Member};
use crate::grep;

/// Folders that hold no source, wherever git does not say so itself.
const NOT_SOURCE: &[&str] = &[".git", "target"];

/// What cargo puts into a target folder, wherever that is.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// The workspace as a rule sees it.
#[derive(Debug, Default)]
pub struct House {
    /// The workspace root.
    pub root: PathBuf,
    /// Every text file that is tracked, or would be by `git add --all`; sorted by path.
    pub files: Vec<SourceFile>,
    /// The dependency graph.
    pub graph: Graph,
}

/// A text file.
#[derive(Debug)]
pub struct SourceFile {
    /// Relative to the root, with forward slashes.
    pub path: String,
    /// What it holds.
    pub text: String,
}

impl House {
    /// Reads the workspace around the current folder.
    ///
    /// # Errors
    /// If cargo cannot describe the workspace or a file cannot be read.
    pub fn load() -> anyhow::Result<Self> {
        let metadata = graph::metadata()?;
        let root = metadata.workspace_root.clone().into_std_path_buf();
        let files = read_files(&root)?;
        let mut graph = Graph::of(&metadata);
        let tree = ["tree", "--workspace", "--all-features", "--target", "all", "--prefix", "none"];
        let mut tree = cargo::command(&root, tree);
        tree.args(["-e", "normal,build,dev"]);
        graph.keep_built(&cargo::printed(&mut tree)?);
        Ok(Self { root, files, graph })
    }

    /// The file at that path, if there is one.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Every Rust source.
    pub fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The line of a manifest that names a dependency; the first line if none does.
    #[must_use]
    pub fn line_of_dep(&self, member: &Member, dep: &str) -> usize {
        let names = |line: &str| {
            let rest = line.trim_start().strip_prefix(dep);
            rest.is_some_and(|rest| rest.starts_with([' ', '.', '=']))
        };
        self.first_line(&member.manifest, names)
    }

    /// The line of `Cargo.lock` where a package begins; the first line if it has none.
    #[must_use]
    pub fn line_of_lock(&self, package: &str) -> usize {
        let wanted = format!("name = \"{package}\"");
        self.first_line("Cargo.lock", |line| line == wanted)
    }

    fn first_line(&self, path: &str, wanted: impl Fn(&str) -> bool) -> usize {
        let text = self.file(path).map_or("", |file| file.text.as_str());
        text.lines().position(wanted).map_or(1, |index| index + 1)
    }
}

impl SourceFile {
    /// A finding at a byte offset of this file.
    #[must_use]
    pub fn finding(
        &self,
        rule: &'static str,
        offset: usize,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) -> Finding {
        let line = grep::line_of(&self.text, offset);
        Finding { rule, path: self.path.clone(), line, what: what.into(), mend: mend.into() }
    }
}

/// Every text file below a root: those git knows or would add, or all of them without git.
///
/// # Errors
/// If a folder or a file cannot be read. A tracked file that was deleted is no error.
pub fn read_files(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut paths = match listed_by_git(root) {
        Some(paths) => paths,
        None => walked(root)?,
    };
    paths.sort();
    paths.dedup();
    let mut files = Vec::new();
    for path in paths {
        let whole = root.join(&path);
        if !whole.is_file() {
            continue;
        }
        let bytes = fs::read(&whole).with_context(|| format!("cannot read {path}"))?;
        // A file with a NUL byte, or that is no UTF-8, is not text.
        if !bytes.contains(&0)
            && let Ok(text) = String::from_utf8(bytes)
        {
            files.push(SourceFile { path, text });
        }
    }
    Ok(files)
}

/// What git tracks or would add; nothing if this root is not the top of a checkout.
fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top.trim_end()).ok()? != fs::canonicalize(root).ok()? {
        return None;
    }
    let listed = git(root, &["ls-files", "-z", "-co", "--exclude-standard"])?;
    Some(listed.split_terminator('\0').map(str::to_owned).collect())
}

/// What a git command prints, if it succeeds. A hook's variables would point git elsewhere.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(root).args(args);
    for hooked in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(hooked);
    }
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn walked(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let whole = root.join(&folder);
        if whole.join(CACHE_TAG).is_file() {
            continue;
        }
        for entry in fs::read_dir(&whole).with_context(|| format!("cannot list {folder}"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if NOT_SOURCE.contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // Links are not followed: what they point at is listed where it is.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn paths(root: &Path) -> Vec<String> {
        read_files(root).unwrap().into_iter().map(|file| file.path).collect()
    }

    #[test]
    fn without_git_all_text_is_read_but_no_build_output() {
        let tree = testing::tree(&[
            ("b/x.rs", "x"),
            ("a.md", "a"),
            ("target/debug/y.rs", "y"),
            ("elsewhere/CACHEDIR.TAG", ""),
            ("elsewhere/z.rs", "z"),
            ("b/bytes", "\0"),
        ]);
        assert_eq!(paths(tree.path()), ["a.md", "b/x.rs"]);
    }

    #[test]
    fn with_git_what_it_ignores_is_left_out_and_what_is_new_is_not() {
        let tree = testing::tree(&[(".gitignore", "/out\n"), ("out/x.rs", "x"), ("new.rs", "n")]);
        git(tree.path(), &["init", "--quiet"]).unwrap();
        assert_eq!(paths(tree.path()), [".gitignore", "new.rs"]);
    }

    #[test]
    fn dependencies_and_packages_have_their_line() {
        let house = testing::house(&[
            ("a/Cargo.toml", "[dependencies]\nfoo-bar = \"1\"\nfoo.workspace = true\n"),
            ("Cargo.lock", "[[package]]\nname = \"foo\"\n"),
        ]);
        let member = Member { manifest: "a/Cargo.toml".into(), ..Member::default() };
        assert_eq!(house.line_of_dep(&member, "foo"), 3);
        assert_eq!(house.line_of_dep(&member, "absent"), 1);
        assert_eq!(house.line_of_lock("foo"), 2);
    }
}
