//! What belongs to one machine stays out of the repository, and files stay small.

use crate::finding::Finding;
use crate::grep;
use crate::house::{House, SourceFile};

/// The name findings carry.
pub const RULE: &str = "hygiene";

/// The longest Rust source, in lines.
const MAX_LINES: usize = 600;

/// Absolute folders of a machine, in halves, so that this file is not found itself.
const MACHINE: &[(&str, &str)] = &[("/wo", "rk/"), ("/ro", "ot/"), ("/tmp/ba", "sh_jobs")];

/// What the address of a package source has in it.
const SOURCES: &[&str] = &["registry", "mirror"];

/// Finds paths of a machine and addresses of package sources in every text file, and Rust sources
/// that grew too long.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    house
        .files
        .iter()
        .flat_map(|file| machine_paths(file).chain(addresses(file)).chain(too_long(file)))
        .collect()
}

fn machine_paths(file: &SourceFile) -> impl Iterator<Item = Finding> {
    MACHINE.iter().flat_map(move |(half, other)| {
        let needle = format!("{half}{other}");
        // After a name or a dot it is the inside of a longer or relative path.
        let absolute = |at: &usize| {
            let before = file.text.as_bytes()[..*at].last();
            !before.is_some_and(|byte| grep::is_word_byte(byte) || b".-".contains(byte))
        };
        let found = grep::find_all(&file.text, &needle).into_iter().filter(absolute);
        found.map(move |at| {
            let what = "a path of one machine";
            file.finding(RULE, at, what, "make it relative, or take it from the environment")
        })
    })
}

fn addresses(file: &SourceFile) -> impl Iterator<Item = Finding> {
    let starts = ["http", "https"].into_iter().flat_map(|scheme| {
        grep::find_words(&file.text, scheme).into_iter().map(move |at| (at, scheme.len()))
    });
    let is_source = |(at, len): &(usize, usize)| {
        file.text[at + len..].strip_prefix("://").is_some_and(|rest| {
            let address = rest.split_whitespace().next().filter(|_| !rest.starts_with(' '));
            let address = address.unwrap_or("").to_ascii_lowercase();
            SOURCES.iter().any(|word| address.contains(word))
        })
    };
    starts.filter(is_source).map(|(at, _)| {
        let what = "the address of a package source";
        file.finding(RULE, at, what, "leave it to each machine's own cargo configuration")
    })
}

fn too_long(file: &SourceFile) -> Option<Finding> {
    let lines = file.text.lines().count();
    (file.path.ends_with(".rs") && lines > MAX_LINES).then(|| Finding {
        rule: RULE,
        path: file.path.clone(),
        line: MAX_LINES + 1,
        what: format!("{lines} lines, {MAX_LINES} at most"),
        mend: "one idea a file: split it".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    #[test]
    fn paths_of_a_machine_are_found_in_any_text() {
        let text = concat!("a\n`/wo", "rk/x`\nHOME=/ro", "ot/y\ncat /tmp/ba", "sh_jobs.0/out\n");
        let house = house(&[("README.md", text)]);
        assert_eq!(places(&check(&house)), ["README.md:2", "README.md:3", "README.md:4"]);
    }

    #[test]
    fn addresses_of_package_sources_are_found() {
        let text = concat!("x = \"https://", "crates.mirror.example/\"\n\nhttp://", "registry.a\n");
        let house = house(&[(".cargo/config.toml", text)]);
        let mut found = places(&check(&house));
        found.sort();
        assert_eq!(found, [".cargo/config.toml:1", ".cargo/config.toml:3"]);
    }

    #[test]
    fn relative_paths_other_addresses_and_the_lock_file_pass() {
        let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        let text = concat!("../wo", "rk/x home/ro", "ot/ https://example.org the registry\n");
        assert_eq!(check(&house(&[("Cargo.lock", lock), ("README.md", text)])), []);
    }

    #[test]
    fn a_long_source_is_found_and_a_long_text_is_not() {
        let (long, longer) = ("\n".repeat(MAX_LINES), "\n".repeat(MAX_LINES + 1));
        let house = house(&[("a.rs", &long), ("b.rs", &longer), ("c.md", &longer)]);
        assert_eq!(places(&check(&house)), [format!("b.rs:{}", MAX_LINES + 1)]);
    }
}
