//! Planted trees and graphs for the rules' own tests.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::finding::Finding;
use crate::graph::{Dep, Graph, Kind, Member};
use crate::house::{House, read_files};

/// A temporary folder with these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (path, text) in files {
        let whole = folder.path().join(path);
        fs::create_dir_all(whole.parent().unwrap()).unwrap();
        fs::write(whole, text).unwrap();
    }
    folder
}

/// A house with these files, read from a temporary folder, and an empty graph.
pub(crate) fn house(files: &[(&str, &str)]) -> House {
    let folder = tree(files);
    let files = read_files(folder.path()).unwrap();
    House { root: PathBuf::from("."), files, graph: Graph::default() }
}

/// A member of a synthetic graph: its name, its folder, its dependencies.
pub(crate) fn member(name: &str, folder: &str, deps: &[(&str, Kind)]) -> Member {
    let deps = deps.iter().map(|(name, kind)| Dep { name: (*name).to_owned(), kind: *kind });
    Member {
        name: name.to_owned(),
        manifest: format!("{folder}/Cargo.toml"),
        deps: deps.collect(),
        ..Member::default()
    }
}

/// A house without files around these members.
pub(crate) fn house_of(members: Vec<Member>) -> House {
    House { graph: Graph { members, ..Graph::default() }, ..House::default() }
}

/// Where findings are, as `path:line`.
pub(crate) fn places(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
}
