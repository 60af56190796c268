//! The rules of `verify`, one file each.
//!
//! A rule looks at the [`House`] and returns everything it finds. Whom a rule exempts is a constant
//! at the top of its file, with the reason.

use crate::finding::Finding;
use crate::house::House;

pub mod ambient;
pub mod cfg;
pub mod deletes;
pub mod drivers;
pub mod hygiene;
pub mod layers;
pub mod licences;
pub mod papers;
pub mod parity;
pub mod purity;
pub mod seams;
pub mod tls;
pub mod unfinished;

/// A named check.
pub struct Rule {
    /// The name its findings carry.
    pub name: &'static str,
    /// The check itself.
    pub check: fn(&House) -> Vec<Finding>,
}

/// Every rule, in the order of their names.
pub const RULES: &[Rule] = &[
    Rule { name: ambient::RULE, check: ambient::check },
    Rule { name: cfg::RULE, check: cfg::check },
    Rule { name: deletes::RULE, check: deletes::check },
    Rule { name: drivers::RULE, check: drivers::check },
    Rule { name: hygiene::RULE, check: hygiene::check },
    Rule { name: layers::RULE, check: layers::check },
    Rule { name: licences::RULE, check: licences::check },
    Rule { name: papers::RULE, check: papers::check },
    Rule { name: parity::RULE, check: parity::check },
    Rule { name: purity::RULE, check: purity::check },
    Rule { name: seams::RULE, check: seams::check },
    Rule { name: tls::RULE, check: tls::check },
    Rule { name: unfinished::RULE, check: unfinished::check },
];

/// Whether a path is one of these, or lies in one of them: entries that end with `/` are folders.
#[must_use]
pub fn listed(path: &str, entries: &[&str]) -> bool {
    entries.iter().any(|entry| path == *entry || (entry.ends_with('/') && path.starts_with(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_beside_this_one_is_a_rule_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        let files = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<_> =
            files.map(|file| file.unwrap().path().file_stem().unwrap().to_owned()).collect();
        files.retain(|name| name != "mod");
        files.sort();
        let names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(files, names);
    }

    #[test]
    fn an_entry_is_a_file_or_a_folder() {
        assert!(listed("app/src/lib.rs", &["app/src/lib.rs"]));
        assert!(listed("tests/e2e/src/lib.rs", &["tests/"]));
        assert!(!listed("app/src/library.rs", &["app/src/lib.rs", "app/src/lib"]));
    }
}
