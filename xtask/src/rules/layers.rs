//! Arrows point inward only: which member of the workspace may depend on which.

use crate::finding::Finding;
use crate::graph::{Kind, Member};
use crate::house::House;

/// The name findings carry.
pub const RULE: &str = "layers";

/// A layer: the members below a folder, and the layers they may depend on.
#[derive(Debug)]
struct Layer {
    /// The folder, with its `/`; the manifests below it are this layer's.
    folder: &'static str,
    /// Where dependencies and build dependencies may lead.
    normal: &'static [&'static str],
    /// Where dev-dependencies may lead besides. An entry without `/` names a single member.
    dev: &'static [&'static str],
}

/// Who may depend on what. The reference store is a yardstick for the other adapters' tests.
const LAYERS: &[Layer] = &[
    Layer { folder: "domain/", normal: &[], dev: &[] },
    Layer { folder: "ports/", normal: &["domain/"], dev: &["tests/"] },
    Layer { folder: "adapters/", normal: &["domain/", "ports/"], dev: &["dlock-memory", "tests/"] },
    Layer { folder: "app/", normal: &["domain/", "ports/", "adapters/"], dev: &["tests/"] },
    Layer {
        folder: "tests/",
        normal: &["domain/", "ports/", "adapters/", "app/", "tests/"],
        dev: &[],
    },
    Layer { folder: "xtask/", normal: &[], dev: &[] },
];

/// Finds every dependency between members that the table does not allow, and every member that
/// stands in no layer.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let members = &house.graph.members;
    let mut findings = Vec::new();
    for member in members {
        let Some(layer) = layer_of(member) else {
            findings.push(Finding {
                rule: RULE,
                path: member.manifest.clone(),
                line: 1,
                what: format!("{} stands in no layer", member.name),
                mend: "move it below the folder of a layer".into(),
            });
            continue;
        };
        for dep in &member.deps {
            let Some(target) = members.iter().find(|other| other.name == dep.name) else {
                continue;
            };
            let dev = if dep.kind == Kind::Dev { layer.dev } else { &[] };
            let leads_there = |entry: &&str| {
                target.name == *entry
                    || layer_of(target).is_some_and(|target| target.folder == *entry)
            };
            if !layer.normal.iter().chain(dev).any(leads_there) {
                findings.push(Finding {
                    rule: RULE,
                    path: member.manifest.clone(),
                    line: house.line_of_dep(member, &dep.name),
                    what: format!("{} depends on {}", member.name, target.name),
                    mend: format!("{} may lead to {}", layer.folder, said(layer, dep.kind)),
                });
            }
        }
    }
    findings
}

fn layer_of(member: &Member) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| member.manifest.starts_with(layer.folder))
}

fn said(layer: &Layer, kind: Kind) -> String {
    let dev = if kind == Kind::Dev { layer.dev } else { &[] };
    let entries: Vec<_> = layer.normal.iter().chain(dev).copied().collect();
    if entries.is_empty() { "no other member".into() } else { entries.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house_of, member, places};

    /// The workspace in small, with one more dependency.
    fn with(name: &str, dep: &str, kind: Kind) -> House {
        use Kind::Normal;
        let mut members = vec![
            member("dlock-domain", "domain", &[]),
            member("dlock-ports", "ports", &[("dlock-domain", Normal), ("async-trait", Normal)]),
            member("dlock-memory", "adapters/memory", &[("dlock-ports", Normal)]),
            member("dlock-http", "adapters/http", &[("dlock-domain", Normal)]),
            member("dlock", "app", &[("dlock-http", Normal), ("dlock-memory", Normal)]),
            member("dlock-judge", "tests/judge", &[("dlock", Normal)]),
            member("xtask", "xtask", &[("anyhow", Normal)]),
        ];
        let changed = members.iter_mut().find(|member| member.name == name).unwrap();
        changed.deps.push(crate::graph::Dep { name: dep.into(), kind });
        house_of(members)
    }

    #[test]
    fn an_arrow_that_points_outward_is_found() {
        for (name, dep, kind) in [
            ("dlock-domain", "dlock-ports", Kind::Normal),
            ("dlock-domain", "dlock-judge", Kind::Dev),
            ("dlock-ports", "dlock-memory", Kind::Dev),
            ("dlock-http", "dlock-memory", Kind::Normal),
            ("dlock-http", "dlock-memory", Kind::Build),
            ("dlock-memory", "dlock-http", Kind::Dev),
            ("dlock-http", "dlock", Kind::Normal),
            ("dlock", "dlock-judge", Kind::Normal),
            ("dlock-judge", "xtask", Kind::Normal),
            ("xtask", "dlock-domain", Kind::Normal),
        ] {
            let findings = check(&with(name, dep, kind));
            assert_eq!(findings.len(), 1, "{name} -> {dep}: {findings:?}");
            assert_eq!(findings[0].what, format!("{name} depends on {dep}"));
        }
    }

    #[test]
    fn arrows_inward_and_the_freer_ones_of_tests_pass() {
        for (name, dep, kind) in [
            ("dlock-http", "dlock-ports", Kind::Normal),
            ("dlock-http", "dlock-memory", Kind::Dev),
            ("dlock-http", "dlock-judge", Kind::Dev),
            ("dlock", "dlock-domain", Kind::Normal),
            ("dlock-judge", "dlock-memory", Kind::Normal),
            ("dlock-domain", "serde", Kind::Normal),
        ] {
            assert_eq!(check(&with(name, dep, kind)), [], "{name} -> {dep}");
        }
    }

    #[test]
    fn a_member_outside_every_layer_is_found() {
        let house = house_of(vec![member("stray", "somewhere", &[])]);
        assert_eq!(places(&check(&house)), ["somewhere/Cargo.toml:1"]);
    }
}
