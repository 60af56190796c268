//! Every case is in the suite: a function that is not listed would be a test that never runs.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

use std::{fs, path::Path};

/// The cases in a folder of the sources that the suite's text does not name, and the macro's
/// names that are no case.
fn missing(folder: &str, suite: &str) -> Vec<String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let suite = fs::read_to_string(sources.join(suite)).unwrap();
    let mut missing = Vec::new();
    let mut cases = 0;
    for entry in fs::read_dir(sources.join(folder)).unwrap() {
        let path = entry.unwrap().path();
        let group = path.file_stem().unwrap().to_str().unwrap();
        let listed = suite
            .split_once(&format!(" {group} {{\n"))
            .map_or("", |(_, rest)| rest.split_once('}').map_or("", |(list, _)| list));
        for line in fs::read_to_string(&path).unwrap().lines() {
            let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
            let name = rest.split('<').next().unwrap();
            cases += 1;
            if !listed.lines().any(|line| line.trim() == format!("{name},")) {
                missing.push(format!("{group}::{name}"));
            }
        }
    }
    assert!(cases > 0, "no case was found in {folder}");
    missing
}

#[test]
fn every_case_is_listed() {
    assert_eq!(missing("cases", "suite.rs"), [""; 0]);
    assert_eq!(missing("service_cases", "service_suite.rs"), [""; 0]);
}
