//! Names that must not cross a seam, comments included: a word in the wrong place is the first sign
//! of a thought in the wrong place.

use crate::finding::Finding;
use crate::house::House;
use crate::{grep, rules};

/// The name findings carry.
pub const RULE: &str = "seams";

/// The domain decides; it neither waits nor watches.
const DOMAIN: &[&str] = &["domain/src/"];

/// The service runs on any store and knows none by name.
const SERVICE: &[&str] = &["app/src/service.rs", "app/src/service/"];

/// What stores are called, in any case.
const STORES: &[&str] = &["etcd", "postgres", "sqlite", "embedded"];

/// Finds words of waiting in the domain, and names of stores in the service.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &house.files {
        if rules::listed(&file.path, DOMAIN) {
            let mut found = grep::find_all(&file.text, "ReleaseWaiter");
            found.extend(grep::find_words(&file.text, "Watch"));
            findings.extend(found.into_iter().map(|at| {
                let what = "waiting for a release is spoken of in the domain";
                file.finding(RULE, at, what, "move it to a port or an adapter")
            }));
        }
        if rules::listed(&file.path, SERVICE) {
            for store in STORES {
                findings.extend(grep::find_all_any_case(&file.text, store).into_iter().map(|at| {
                    let what = format!("the service names a store: {store}");
                    file.finding(RULE, at, what, "say what the port promises instead")
                }));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    #[test]
    fn words_that_crossed_a_seam_are_found_also_in_comments() {
        let house = house(&[
            ("domain/src/a.rs", "\n// see Watch\nuse x::ReleaseWaiter;\n"),
            ("app/src/service.rs", "// as EtcdStore does\n"),
            ("app/src/service/queue.rs", "\nfn sqlite_only() {}\n// PostgreSQL\n"),
        ]);
        assert_eq!(
            places(&check(&house)),
            [
                "app/src/service.rs:1",
                "app/src/service/queue.rs:3",
                "app/src/service/queue.rs:2",
                "domain/src/a.rs:3",
                "domain/src/a.rs:2"
            ]
        );
    }

    #[test]
    fn the_same_words_pass_on_their_own_side() {
        let house = house(&[
            ("domain/src/mark.rs", "struct HighWatermark; struct Watcher; // watch\n"),
            ("ports/src/wait.rs", "trait ReleaseWaiter {}\n"),
            ("app/src/wiring.rs", "// etcd, SQLite\n"),
            ("app/src/service.rs", "// any store\n"),
        ]);
        assert_eq!(check(&house), []);
    }
}
