//! A build without a feature contains none of the crates that the feature brings.
//!
//! Two questions are put to `cargo tree` of package `dlock`: without any feature, and with each
//! feature alone. What must be absent follows from the features that are on, so that a feature
//! which turns on another may bring the other's crates too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::cargo;
use crate::finding::Finding;
use crate::graph::Member;

/// A feature and the crates that only it may bring.
#[derive(Debug)]
pub struct Brings {
    /// The feature of package `dlock`.
    pub feature: &'static str,
    /// Crates that are absent unless this feature, or another one listed with them, is on.
    pub crates: &'static [&'static str],
}

/// Which feature may bring which driver or server crate. A crate may be listed more than once.
pub const BRINGS: &[Brings] = &[
    Brings { feature: "embedded", crates: &["libsqlite3-sys", "diesel"] },
    Brings { feature: "server", crates: &["axum", "hyper"] },
    Brings { feature: "client", crates: &["reqwest", "rustls", "hyper"] },
    // tonic, below etcd-client, is built on hyper and axum, and speaks TLS through rustls.
    Brings { feature: "etcd", crates: &["etcd-client", "tonic", "axum", "hyper", "rustls"] },
    Brings {
        feature: "postgres",
        crates: &[
            "diesel-async",
            "deadpool",
            "tokio-postgres",
            "tokio-postgres-rustls",
            "rustls",
            "diesel",
        ],
    },
];

/// The name findings carry.
pub const RULE: &str = "isolation";

/// Asks cargo for the tree of every build in question and finds what should not be there.
///
/// # Errors
/// If cargo cannot be run or cannot resolve a tree.
pub fn check(root: &Path, dlock: &Member) -> anyhow::Result<Vec<Finding>> {
    let alone = dlock.features.keys().filter(|feature| *feature != "default");
    let builds = std::iter::once(None).chain(alone.map(|feature| Some(feature.as_str())));
    let mut findings = Vec::new();
    for feature in builds {
        let base = ["tree", "-p", &dlock.name, "--no-default-features", "-e", "normal"];
        let mut command = cargo::command(root, base);
        command.args(["--prefix", "none"]).args(feature.map(|name| format!("--features={name}")));
        let tree = cargo::printed(&mut command)?;
        let on = turned_on(&dlock.features, feature);
        findings.extend(intruders(&tree, &on).into_iter().map(|intruder| Finding {
            rule: RULE,
            path: dlock.manifest.clone(),
            line: 1,
            what: format!("{} brings {intruder}", said(feature)),
            mend: "make the dependency that leads to it optional, behind its own feature".into(),
        }));
    }
    Ok(findings)
}

fn said(feature: Option<&str>) -> String {
    feature.map_or("a build without features".into(), |name| format!("feature {name} alone"))
}

/// A feature and all that it turns on in the same package.
fn turned_on(features: &BTreeMap<String, Vec<String>>, start: Option<&str>) -> BTreeSet<String> {
    let mut on = BTreeSet::new();
    let mut next: Vec<String> = start.map(str::to_owned).into_iter().collect();
    while let Some(name) = next.pop() {
        // `dep:x` and `x/y` are no features of this package.
        if let Some(implied) = features.get(&name)
            && on.insert(name)
        {
            next.extend(implied.iter().cloned());
        }
    }
    on
}

/// The watched crates in a printed tree that none of the features brings.
fn intruders(tree: &str, on: &BTreeSet<String>) -> BTreeSet<&'static str> {
    let crates: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let is_on = |brings: &&Brings| on.contains(brings.feature);
    let allowed: BTreeSet<_> =
        BRINGS.iter().filter(is_on).flat_map(|brings| brings.crates).collect();
    let watched = BRINGS.iter().flat_map(|brings| brings.crates);
    let found = watched.filter(|name| crates.contains(*name) && !allowed.contains(name));
    found.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features() -> BTreeMap<String, Vec<String>> {
        let implied = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        BTreeMap::from([
            ("embedded".into(), implied(&["dep:dlock-embedded"])),
            ("server".into(), implied(&["dep:dlock-http"])),
            ("cli".into(), implied(&["dep:clap", "embedded", "server"])),
        ])
    }

    fn found(tree: &str, feature: Option<&str>) -> Vec<&'static str> {
        intruders(tree, &turned_on(&features(), feature)).into_iter().collect()
    }

    #[test]
    fn a_driver_without_its_feature_is_found() {
        let tree = "dlock v0.1.0\ndiesel v2.3.0\nlibsqlite3-sys v0.35.0\nhyper v1.0.0 (*)\n";
        assert_eq!(found(tree, None), ["diesel", "hyper", "libsqlite3-sys"]);
        assert_eq!(found(tree, Some("server")), ["diesel", "libsqlite3-sys"]);
        assert_eq!(found(tree, Some("embedded")), ["hyper"]);
    }

    #[test]
    fn a_fence_that_is_more_than_an_examples_is_found() {
        let tree = "dlock v0.1.0\ndlock-fence v0.1.0\ndiesel-async v0.9.2\ntokio-postgres v0.7.0\n";
        assert_eq!(found(tree, None), ["diesel-async", "tokio-postgres"]);
        assert_eq!(found(tree, Some("cli")), ["diesel-async", "tokio-postgres"]);
    }

    #[test]
    fn a_feature_may_bring_what_the_features_it_turns_on_bring() {
        let tree = "dlock v0.1.0\ndiesel v2.3.0\nhyper v1.0.0\n";
        assert!(found(tree, Some("cli")).is_empty());
    }

    #[test]
    fn a_crate_with_a_longer_name_is_another_crate() {
        assert!(found("hyper-util v0.1.0\ndiesel_derives v2.3.0\n", None).is_empty());
    }
}
