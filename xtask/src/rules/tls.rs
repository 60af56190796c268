//! One TLS provider in the whole graph: two of them panic when the first connection is made.

use crate::finding::Finding;
use crate::house::House;

/// The name findings carry.
pub const RULE: &str = "tls";

/// The provider that is not ours.
const FORBIDDEN: &str = "ring";

/// Finds the other provider in the resolved graph.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let found = house.graph.resolved.iter().filter(|package| package.name == FORBIDDEN);
    let finding = |version: &str| Finding {
        rule: RULE,
        path: "Cargo.lock".into(),
        line: house.line_of_lock(FORBIDDEN),
        what: format!("{FORBIDDEN} {version} is a second TLS provider"),
        mend: format!(
            "`cargo tree --all-features -i {FORBIDDEN}` names who asks for it: choose aws-lc there"
        ),
    };
    found.map(|package| finding(&package.version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Resolved;
    use crate::testing::{house, places};

    fn with(name: &str) -> Vec<Finding> {
        let lock = format!("version = 4\n\n[[package]]\nname = \"{name}\"\n");
        let mut house = house(&[("Cargo.lock", &lock)]);
        house.graph.resolved.push(Resolved { name: name.into(), ..Resolved::default() });
        check(&house)
    }

    #[test]
    fn a_second_provider_is_found_in_the_lock_file() {
        assert_eq!(places(&with("ring")), ["Cargo.lock:4"]);
    }

    #[test]
    fn a_crate_with_a_similar_name_passes() {
        assert_eq!(with("ring-buffer"), []);
    }
}
