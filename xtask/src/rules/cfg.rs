//! Features are decided in one place: conditional compilation on a feature belongs to the wiring.

use crate::finding::Finding;
use crate::house::House;
use crate::{grep, lex, rules};

/// The name findings carry.
pub const RULE: &str = "cfg";

/// Where features are turned into types. The fence has no wiring above it, since it is used without
/// the rest: its root gates a module for each kind of resource.
const WIRING: &[&str] = &[
    "adapters/fence/src/lib.rs",
    "app/src/lib.rs",
    "app/src/main.rs",
    "app/src/wiring.rs",
    "app/src/wiring/",
];

/// Further places. Meant for three things that have to stand where they act, and for no others:
/// failpoints, planted bugs that the judge has to catch, and the export of traces. None is there.
const ALLOWED: &[&str] = &[];

/// What opens a condition.
const OPENERS: &[&str] = &["cfg(", "cfg!(", "cfg_attr("];

/// Finds conditions that ask for a feature, however deep in `all`, `any` or `not`.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    let elsewhere = |path: &str| !rules::listed(path, WIRING) && !rules::listed(path, ALLOWED);
    for file in house.rust().filter(|file| elsewhere(&file.path)) {
        let code = lex::views(&file.text).code;
        for opener in OPENERS {
            let opened = grep::find_all(&code, opener).into_iter();
            findings.extend(opened.filter(|at| asks_for_feature(&code, *at, opener)).map(|at| {
                let what = "a feature is asked for outside the wiring";
                file.finding(RULE, at, what, "gate the whole crate in app/src/wiring.rs instead")
            }));
        }
    }
    findings
}

/// Whether the condition that starts here is one, and names a feature.
fn asks_for_feature(code: &str, at: usize, opener: &str) -> bool {
    if code.as_bytes()[..at].last().is_some_and(grep::is_word_byte) {
        return false;
    }
    let inside = &code[at + opener.len()..];
    let mut depth = 1_usize;
    let end = inside.find(|sign| {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let condition = &inside[..end.unwrap_or(inside.len())];
    let equals = |at: &usize| condition[at + "feature".len()..].trim_start().starts_with('=');
    grep::find_words(condition, "feature").iter().any(equals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    #[test]
    fn a_feature_in_a_service_is_found_however_it_is_written() {
        let source = "#[cfg(feature = \"a\")]\nfn a() {}\n#[cfg(all(unix,\n    not(feature=\"b\")))]\n\
                      fn b() { if cfg!(feature = \"c\") {} }\n#[cfg_attr(feature = \"d\", test)]\n";
        let house = house(&[
            ("app/src/service.rs", source),
            ("adapters/fence/src/resource.rs", "#[cfg(feature = \"postgres\")]\nfn a() {}\n"),
            ("adapters/x/build.rs", ""),
        ]);
        let mut places = places(&check(&house));
        places.sort();
        let mut lines = vec!["adapters/fence/src/resource.rs:1".to_owned()];
        lines.extend([1, 3, 5, 6].map(|line| format!("app/src/service.rs:{line}")));
        assert_eq!(places, lines);
    }

    #[test]
    fn wiring_other_conditions_and_mere_talk_pass() {
        let gated = "#[cfg(feature = \"a\")]\nmod a;\n";
        let other = "// #[cfg(feature = \"x\")]\n#[cfg(test)]\nmod tests {}\n#[cfg(unix)]\n\
                     fn feature() { mycfg(feature = 1); let s = \"cfg(feature = 1)\"; }\n";
        let house = house(&[
            ("adapters/fence/src/lib.rs", gated),
            ("app/src/lib.rs", gated),
            ("app/src/main.rs", gated),
            ("app/src/wiring.rs", gated),
            ("app/src/wiring/embedded.rs", gated),
            ("app/src/service.rs", other),
            ("README.md", gated),
        ]);
        assert_eq!(check(&house), []);
    }
}
