//! The verb that only fixes: what clippy can mend by itself, then the format.

use std::path::Path;

use crate::cargo;

/// The steps, in order: mending may leave lines unformatted, so the format comes last.
const STEPS: &[&[&str]] = &[
    &["clippy", "--fix", "--workspace", "--all-targets", "--allow-dirty", "--allow-staged"],
    &["fmt", "--all"],
];

/// Runs every step, also after one failed; whether all succeeded.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(root: &Path) -> anyhow::Result<bool> {
    let mut all = true;
    for step in STEPS {
        all &= cargo::succeeds(&mut cargo::command(root, *step))?;
    }
    Ok(all)
}
