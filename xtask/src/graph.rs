//! The dependency graph, as plain data that a test can write by hand.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand};

/// The workspace's own packages and everything that is resolved for them.
#[derive(Debug, Default)]
pub struct Graph {
    /// The workspace's members.
    pub members: Vec<Member>,
    /// Every package of the resolved graph, members included, with all features on.
    pub resolved: Vec<Resolved>,
}

/// A package of this workspace.
#[derive(Debug, Default)]
pub struct Member {
    /// The package's name.
    pub name: String,
    /// Its manifest, relative to the workspace root, with forward slashes.
    pub manifest: String,
    /// What its manifest depends on, optional dependencies included.
    pub deps: Vec<Dep>,
    /// Its features and what each turns on.
    pub features: BTreeMap<String, Vec<String>>,
}

/// A dependency as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dep {
    /// The package's name, whatever it is renamed to.
    pub name: String,
    /// What it is needed for.
    pub kind: Kind,
}

/// What a dependency is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Always.
    Normal,
    /// Tests, examples and benches only.
    Dev,
    /// The build script.
    Build,
}

/// A package of the resolved graph.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence expression, if it declares one.
    pub licence: Option<String>,
}

/// Asks cargo for the metadata of the workspace around the current folder, with all features on.
///
/// # Errors
/// If cargo cannot read the workspace or resolve its dependencies.
pub fn metadata() -> anyhow::Result<Metadata> {
    Ok(MetadataCommand::new().features(CargoOpt::AllFeatures).exec()?)
}

impl Graph {
    /// Takes from cargo's metadata what the rules look at.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        let members = metadata.workspace_packages().into_iter().map(|package| Member {
            name: package.name.to_string(),
            manifest: package
                .manifest_path
                .strip_prefix(&metadata.workspace_root)
                .unwrap_or(&package.manifest_path)
                .as_str()
                .replace('\\', "/"),
            deps: package
                .dependencies
                .iter()
                .map(|dep| Dep { name: dep.name.clone(), kind: Kind::of(dep.kind) })
                .collect(),
            features: package.features.clone(),
        });
        let used: BTreeSet<_> = metadata
            .resolve
            .iter()
            .flat_map(|resolve| &resolve.nodes)
            .map(|node| &node.id)
            .collect();
        let resolved = metadata.packages.iter().filter(|package| used.contains(&package.id));
        let resolved = resolved.map(|package| Resolved {
            name: package.name.to_string(),
            version: package.version.to_string(),
            licence: package.license.clone(),
        });
        Self { members: members.collect(), resolved: resolved.collect() }
    }

    /// Leaves in `resolved` what is really built. cargo's metadata also lists packages that only a
    /// weak feature (`package?/feature`) mentions; `cargo tree` does not. `tree` is what it prints
    /// with `--prefix none`, a line `name vVERSION …` a package.
    pub fn keep_built(&mut self, tree: &str) {
        let built: BTreeSet<(&str, &str)> = tree
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                Some((words.next()?, words.next()?.strip_prefix('v')?))
            })
            .collect();
        self.resolved.retain(|package| built.contains(&(&*package.name, &*package.version)));
    }

    /// The member of that name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

impl Kind {
    /// Unknown kinds are taken for normal ones, which the rules treat most strictly.
    fn of(kind: DependencyKind) -> Self {
        match kind {
            DependencyKind::Development => Self::Dev,
            DependencyKind::Build => Self::Build,
            _ => Self::Normal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_metadata_mentions_is_left_out() {
        let package = |name: &str, version: &str| Resolved {
            name: name.into(),
            version: version.into(),
            licence: None,
        };
        let resolved = vec![package("a", "1.0.0"), package("a", "2.0.0"), package("weak", "1.0.0")];
        let mut graph = Graph { members: Vec::new(), resolved };
        graph.keep_built("a v1.0.0 (proc-macro)\n\nb v1.0.0 (*)\n");
        let left: Vec<_> = graph.resolved.iter().map(|p| (&*p.name, &*p.version)).collect();
        assert_eq!(left, [("a", "1.0.0")]);
    }

    #[test]
    fn the_real_workspace_has_its_own_package_with_its_dependencies() {
        let graph = Graph::of(&metadata().unwrap());
        let xtask = graph.member("xtask").unwrap();
        assert_eq!(xtask.manifest, "xtask/Cargo.toml");
        let app = graph.member("dlock").unwrap();
        assert!(app.deps.contains(&Dep { name: "tempfile".into(), kind: Kind::Dev }));
        assert!(xtask.deps.contains(&Dep { name: "anyhow".into(), kind: Kind::Normal }));
        let anyhow = graph.resolved.iter().find(|package| package.name == "anyhow").unwrap();
        assert_eq!(anyhow.licence.as_deref(), Some("MIT OR Apache-2.0"));
    }
}
