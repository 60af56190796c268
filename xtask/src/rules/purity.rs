//! The domain has no dependency of any kind; the ports have exactly two.

use crate::finding::Finding;
use crate::graph::{Kind, Member};
use crate::house::House;

/// The name findings carry.
pub const RULE: &str = "purity";

/// All that the ports may depend on outside tests, and must.
const PORTS: &[&str] = &["dlock-domain", "async-trait"];

/// Finds dependencies of `dlock-domain`, and those of `dlock-ports` that are one too many or too
/// few.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(domain) = house.graph.member("dlock-domain") {
        findings.extend(domain.deps.iter().map(|dep| {
            let what = format!("dlock-domain depends on {}", dep.name);
            at(house, domain, &dep.name, what, "write it by hand, or do it outside the domain")
        }));
    }
    if let Some(ports) = house.graph.member("dlock-ports") {
        let outside_tests = || ports.deps.iter().filter(|dep| dep.kind != Kind::Dev);
        let allowed = |name: &str, kind| kind == Kind::Normal && PORTS.contains(&name);
        findings.extend(outside_tests().filter(|dep| !allowed(&dep.name, dep.kind)).map(|dep| {
            let what = format!("dlock-ports depends on {}", dep.name);
            at(house, ports, &dep.name, what, "only dlock-domain and async-trait: move it out")
        }));
        let missing = PORTS.iter().filter(|name| !outside_tests().any(|dep| dep.name == **name));
        findings.extend(missing.map(|name| {
            let what = format!("dlock-ports does not depend on {name}");
            at(house, ports, name, what, "add it, or change this rule with a decision record")
        }));
    }
    findings
}

fn at(house: &House, member: &Member, dep: &str, what: String, mend: &str) -> Finding {
    let line = house.line_of_dep(member, dep);
    Finding { rule: RULE, path: member.manifest.clone(), line, what, mend: mend.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, house_of, member, places};

    const GOOD: &[(&str, Kind)] = &[("dlock-domain", Kind::Normal), ("async-trait", Kind::Normal)];

    #[test]
    fn any_kind_of_dependency_of_the_domain_is_found_where_it_is_named() {
        let manifest = "[package]\n\n[dev-dependencies]\nproptest = \"1\"\n";
        for kind in [Kind::Normal, Kind::Dev, Kind::Build] {
            let mut house = house(&[("domain/Cargo.toml", manifest)]);
            house.graph.members.push(member("dlock-domain", "domain", &[("proptest", kind)]));
            assert_eq!(places(&check(&house)), ["domain/Cargo.toml:4"]);
        }
    }

    #[test]
    fn the_ports_have_no_dependency_more_and_none_less() {
        let with = |more: &[(&str, Kind)]| {
            check(&house_of(vec![member("dlock-ports", "ports", &[GOOD, more].concat())])).len()
        };
        assert_eq!(with(&[("tokio", Kind::Normal)]), 1);
        assert_eq!(with(&[("async-trait", Kind::Build)]), 1);
        assert_eq!(check(&house_of(vec![member("dlock-ports", "ports", &GOOD[..1])])).len(), 1);
        assert_eq!(with(&[("mockall", Kind::Dev)]), 0);
        assert_eq!(with(&[]), 0);
    }

    #[test]
    fn a_pure_domain_passes_whatever_others_depend_on() {
        let house = house_of(vec![
            member("dlock-domain", "domain", &[]),
            member("dlock", "app", &[("tokio", Kind::Normal)]),
        ]);
        assert_eq!(check(&house), []);
    }
}
