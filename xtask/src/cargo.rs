//! Running cargo in the workspace.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// The variables `cargo run` set for this process alone; passed on, they would be taken for the
/// next package's and cause rebuilds.
const OURS: &[&str] =
    &["CARGO_MANIFEST", "CARGO_PKG_", "CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY"];

/// The cargo this was started with, run from the workspace root.
pub fn command<A: AsRef<OsStr>>(root: &Path, args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(args);
    for (name, _) in env::vars_os() {
        if OURS.iter().any(|ours| name.to_string_lossy().starts_with(ours)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command with this process's input and output; whether it succeeded.
///
/// # Errors
/// If it cannot be started.
pub fn succeeds(command: &mut Command) -> anyhow::Result<bool> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    Ok(status.success())
}

/// Runs a command and takes what it prints to standard output.
///
/// # Errors
/// If it cannot be started or fails; its own words are in the message.
pub fn printed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", said.trim());
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_the_words_of_the_command() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(printed(&mut command(root, ["--version"])).unwrap().starts_with("cargo "));
        let error = printed(&mut command(root, ["no-such-verb"])).unwrap_err();
        assert!(error.to_string().contains("no such command"), "{error}");
    }

    #[test]
    fn what_cargo_told_this_package_is_not_passed_on() {
        let command = command(Path::new("."), ["check"]);
        // Cargo sets this one for every test it runs.
        let removed =
            command.get_envs().any(|(name, value)| name == "CARGO_PKG_NAME" && value.is_none());
        assert!(removed);
    }
}
