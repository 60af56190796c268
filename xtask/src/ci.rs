//! Everything that is checked before a change is taken, apart from the tests: one table at the
//! end, every step run whatever the others did.

use std::path::Path;

use anyhow::Context;

use crate::graph::{self, Graph, Member};
use crate::stopwatch::Stopwatch;
use crate::{cargo, isolation, say, verify};

/// The package whose features are built one by one.
const APP: &str = "dlock";

/// Feature sets that somebody really builds, beyond each feature alone; a set is built once the
/// package has all of its features.
const COMBINATIONS: &[(&str, &[&str])] = &[
    ("embedded server", &["embedded", "server"]),
    ("etcd server", &["etcd", "server"]),
    ("postgres server", &["postgres", "server"]),
];

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    name: String,
    action: Action,
}

#[derive(Debug, PartialEq, Eq)]
enum Action {
    Cargo { args: Vec<String>, env: Option<(&'static str, &'static str)> },
    Isolation,
    Verify,
}

/// Runs all steps and prints the table; whether all succeeded.
///
/// # Errors
/// If the workspace cannot be read. A step that cannot be run has failed, the next one still runs.
pub fn run() -> anyhow::Result<bool> {
    let metadata = graph::metadata()?;
    let root = metadata.workspace_root.as_std_path();
    let graph = Graph::of(&metadata);
    let app = graph.member(APP).with_context(|| format!("the workspace has no package {APP}"))?;
    let mut rows = Vec::new();
    for step in plan(app) {
        say::line(format_args!("== {}", step.name));
        let watch = Stopwatch::start();
        let passed = perform(&step.action, root, app).unwrap_or_else(|error| {
            say::line(format_args!("{error:#}"));
            false
        });
        rows.push((step.name, watch.seconds(), passed));
    }
    say::line(format_args!("\n{}", table(&rows)));
    Ok(rows.iter().all(|(_, _, passed)| *passed))
}

fn perform(action: &Action, root: &Path, app: &Member) -> anyhow::Result<bool> {
    match action {
        Action::Cargo { args, env } => {
            let mut command = cargo::command(root, args);
            command.envs(*env);
            cargo::succeeds(&mut command)
        }
        Action::Isolation => {
            let findings = isolation::check(root, app)?;
            findings.iter().for_each(|finding| say::line(format_args!("{finding}")));
            Ok(findings.is_empty())
        }
        Action::Verify => verify::run(),
    }
}

/// The steps for a package with these features.
fn plan(app: &Member) -> Vec<Step> {
    let mut steps = vec![
        step("format", "fmt --all -- --check"),
        step("clippy", "clippy --workspace --all-targets -- -D warnings"),
    ];
    let mut docs = step("docs", "doc --workspace --no-deps");
    if let Action::Cargo { env, .. } = &mut docs.action {
        *env = Some(("RUSTDOCFLAGS", "-D warnings"));
    }
    steps.push(docs);
    let bare = format!("check -p {} --no-default-features", app.name);
    steps.push(step("no feature", &bare));
    for feature in app.features.keys().filter(|feature| *feature != "default") {
        let line = format!("{bare} --features {feature}");
        steps.push(step(&format!("feature {feature}"), &line));
    }
    for (name, set) in COMBINATIONS {
        if set.iter().all(|feature| app.features.contains_key(*feature)) {
            let line = format!("{bare} --features {}", set.join(","));
            steps.push(step(&format!("features {name}"), &line));
        }
    }
    steps.push(step("default features", &format!("check -p {}", app.name)));
    steps.push(step("fence without a database", "check -p dlock-fence --no-default-features"));
    steps.push(Step { name: isolation::RULE.into(), action: Action::Isolation });
    steps.push(Step { name: "verify".into(), action: Action::Verify });
    steps
}

/// A step of cargo's, from its command line; no argument of it holds a blank.
fn step(name: &str, line: &str) -> Step {
    let args = line.split_whitespace().map(str::to_owned).collect();
    Step { name: name.into(), action: Action::Cargo { args, env: None } }
}

fn table(rows: &[(String, f64, bool)]) -> String {
    let width = rows.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
    let row = |(name, seconds, passed): &(String, f64, bool)| {
        let outcome = if *passed { "ok" } else { "FAILED" };
        format!("{name:<width$}  {seconds:>7.1} s  {outcome}")
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(features: &[&str]) -> Member {
        let features = features.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        Member { name: "dlock".into(), features, ..Member::default() }
    }

    fn lines(app: &Member) -> Vec<String> {
        let steps = plan(app);
        let cargo = steps.iter().filter_map(|step| match &step.action {
            Action::Cargo { args, .. } => Some(args.join(" ")),
            Action::Isolation | Action::Verify => None,
        });
        cargo.collect()
    }

    #[test]
    fn every_feature_is_built_alone_and_default_is_none() {
        let lines = lines(&app(&["default", "cli", "embedded"]));
        let bare = "check -p dlock --no-default-features";
        assert!(lines.contains(&bare.to_owned()));
        assert!(lines.contains(&format!("{bare} --features cli")));
        assert!(lines.contains(&format!("{bare} --features embedded")));
        assert!(lines.contains(&"check -p dlock".to_owned()));
        assert!(lines.contains(&"check -p dlock-fence --no-default-features".to_owned()));
        assert!(!lines.iter().any(|line| line.contains("--features default")));
    }

    #[test]
    fn a_combination_is_built_once_its_features_exist() {
        let wanted = "check -p dlock --no-default-features --features embedded,server".to_owned();
        assert!(lines(&app(&["embedded", "server"])).contains(&wanted));
        assert!(!lines(&app(&["embedded"])).contains(&wanted));
    }

    #[test]
    fn isolation_and_verify_are_the_last_steps() {
        let steps = plan(&app(&[]));
        let last: Vec<_> = steps.iter().rev().take(2).map(|step| &step.action).collect();
        assert_eq!(last, [&Action::Verify, &Action::Isolation]);
    }

    #[test]
    fn the_table_names_the_step_that_failed() {
        let table = table(&[("format".into(), 0.25, true), ("docs".into(), 12.0, false)]);
        assert_eq!(table, "format      0.2 s  ok\ndocs       12.0 s  FAILED");
    }
}
