//! The tool, in a folder of its own below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::{cargo, say};

/// What is installed, relative to the workspace root.
const REQUIREMENTS: &str = "xtask/scan/requirements.txt";

/// The tool's program, installed now if it is not there in the versions asked for.
///
/// # Errors
/// If there is no Python, it cannot make an environment, or the tool cannot be installed; each says
/// what to do.
pub(super) fn tool(root: &Path, place: &Path) -> anyhow::Result<PathBuf> {
    let wanted = fs::read_to_string(root.join(REQUIREMENTS))
        .with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let environment = place.join("venv");
    let tool = environment.join("bin/schemathesis");
    // Written when all is there, so that an installation that was cut short is begun anew.
    let complete = environment.join("complete");
    if tool.is_file() && fs::read_to_string(&complete).is_ok_and(|installed| installed == wanted) {
        return Ok(tool);
    }
    say::line(format_args!("installing into {}", environment.display()));
    made(&environment)?;
    let mut install = Command::new(environment.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    if !cargo::succeeds(install.arg(root.join(REQUIREMENTS)))? {
        bail!(
            "pip could not install what {REQUIREMENTS} names: it comes from PyPI, so the network or \
             a source that pip is configured for is needed"
        );
    }
    fs::write(&complete, wanted).context("cannot note that the tool is installed")?;
    Ok(tool)
}

/// An empty environment.
fn made(environment: &Path) -> anyhow::Result<()> {
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(environment);
    match make.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!(
            "python3 cannot make an environment: install its venv and pip (Debian and Ubuntu: \
             apt install python3-venv)"
        ),
        Err(error) => bail!(
            "there is no python3 ({error}): install Python 3.10 or later with venv and pip (Debian \
             and Ubuntu: apt install python3 python3-venv)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_is_installed_in_these_versions_is_used_as_it_is() {
        let tree = testing::tree(&[
            (REQUIREMENTS, "tool==1\n"),
            ("scan/venv/bin/schemathesis", ""),
            ("scan/venv/complete", "tool==1\n"),
        ]);
        let place = tree.path().join("scan");
        assert_eq!(tool(tree.path(), &place).unwrap(), place.join("venv/bin/schemathesis"));
    }

    #[test]
    fn without_a_list_of_what_to_install_it_is_told_which() {
        let tree = testing::tree(&[("a", "")]);
        let error = tool(tree.path(), tree.path()).unwrap_err();
        assert!(error.to_string().contains(REQUIREMENTS), "{error}");
    }
}
