//! A store's driver is named in the one adapter that speaks to that store.

use crate::finding::Finding;
use crate::graph::Kind;
use crate::house::House;

/// The name findings carry.
pub const RULE: &str = "drivers";

/// Whose dev-dependencies may be any driver: its examples open connections of their own, as those
/// do who use it.
const WITH_EXAMPLES: &str = "dlock";

/// A driver and who may name it.
#[derive(Debug)]
struct Driver {
    name: &'static str,
    /// Members that may depend on it in any way. `dlock-fence` is among them wherever it takes the
    /// caller's own connection.
    homes: &'static [&'static str],
}

const DRIVERS: &[Driver] = &[
    Driver { name: "libsqlite3-sys", homes: &["dlock-embedded", "dlock-fence"] },
    Driver { name: "diesel-async", homes: &["dlock-postgres", "dlock-fence"] },
    Driver { name: "tokio-postgres", homes: &["dlock-postgres", "dlock-fence"] },
    Driver { name: "etcd-client", homes: &["dlock-etcd", "dlock-fence"] },
    Driver { name: "diesel", homes: &["dlock-embedded", "dlock-postgres", "dlock-fence"] },
];

/// Finds every member that names a driver which is not its own.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &house.graph.members {
        for dep in &member.deps {
            let Some(driver) = DRIVERS.iter().find(|driver| driver.name == dep.name) else {
                continue;
            };
            let example = member.name == WITH_EXAMPLES && dep.kind == Kind::Dev;
            if !example && !driver.homes.contains(&member.name.as_str()) {
                findings.push(Finding {
                    rule: RULE,
                    path: member.manifest.clone(),
                    line: house.line_of_dep(member, driver.name),
                    what: format!("{} names the driver {}", member.name, driver.name),
                    mend: format!("go through {}", driver.homes.join(" or ")),
                });
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house_of, member};

    fn found(name: &str, dep: &str, kind: Kind) -> usize {
        check(&house_of(vec![member(name, "somewhere", &[(dep, kind)])])).len()
    }

    #[test]
    fn a_driver_away_from_home_is_found() {
        assert_eq!(found("dlock", "libsqlite3-sys", Kind::Normal), 1);
        assert_eq!(found("dlock-http", "etcd-client", Kind::Dev), 1);
        assert_eq!(found("dlock-embedded", "tokio-postgres", Kind::Normal), 1);
        assert_eq!(found("dlock-conformance", "diesel", Kind::Normal), 1);
        assert_eq!(found("dlock", "diesel", Kind::Normal), 1);
        assert_eq!(found("dlock", "diesel-async", Kind::Normal), 1);
        assert_eq!(found("dlock", "diesel-async", Kind::Build), 1);
        assert_eq!(found("dlock-e2e", "diesel-async", Kind::Dev), 1);
    }

    #[test]
    fn a_driver_at_home_and_one_for_examples_pass() {
        assert_eq!(found("dlock-embedded", "libsqlite3-sys", Kind::Normal), 0);
        assert_eq!(found("dlock-embedded", "diesel", Kind::Normal), 0);
        assert_eq!(found("dlock-fence", "diesel-async", Kind::Normal), 0);
        assert_eq!(found("dlock-fence", "diesel", Kind::Normal), 0);
        assert_eq!(found("dlock", "etcd-client", Kind::Dev), 0);
        assert_eq!(found("dlock", "diesel", Kind::Dev), 0);
        assert_eq!(found("dlock", "diesel-async", Kind::Dev), 0);
        assert_eq!(found("dlock-http", "hyper", Kind::Normal), 0);
    }
}
