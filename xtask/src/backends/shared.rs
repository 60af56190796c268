//! The one server of each version that all suites share.
//!
//! It is run by a program of the tests' own, for as long as that one's input is open: so it goes
//! whenever this tool does, whichever way.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use super::choice::Version;

/// A running server. Dropped, it is taken down, and waited for.
#[derive(Debug)]
pub struct Shared {
    program: Child,
    /// Where it is: one address for each of its variables.
    pub endpoints: String,
}

/// One that is about to serve.
#[derive(Debug)]
pub struct Starting(Child);

impl Starting {
    /// Starts one; several can be started before the first is waited for.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn begin(
        program: &Path,
        version: Version,
        env: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(program);
        command.arg(version.number()).stdin(Stdio::piped()).stdout(Stdio::piped());
        // If it fails its words are for people.
        command.envs(env.iter().cloned()).env("RUST_BACKTRACE", "0");
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self(child))
    }

    /// Waits until it serves.
    ///
    /// # Errors
    /// If it ended instead; it has said why.
    pub fn ready(self) -> anyhow::Result<Shared> {
        let mut shared = Shared { program: self.0, endpoints: String::new() };
        let output = shared.program.stdout.take().context("the output is not captured")?;
        BufReader::new(output).read_line(&mut shared.endpoints)?;
        shared.endpoints.truncate(shared.endpoints.trim_end().len());
        ensure!(!shared.endpoints.is_empty(), "it ended instead of serving");
        Ok(shared)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.program.stdin.take();
        // Fails only where it has been waited for.
        let _ = self.program.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::testing::tree;

    fn with(script: &str) -> anyhow::Result<(Shared, tempfile::TempDir)> {
        let folder = tree(&[("program", script)]);
        let program = folder.path().join("program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
        let env = [("WHERE".to_owned(), folder.path().display().to_string())];
        // Another test's new process may hold the file open for a moment longer.
        let busy = |error: &anyhow::Error| {
            let cause = error.downcast_ref::<std::io::Error>();
            cause.is_some_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
        };
        let mut starting = Starting::begin(&program, Version::Etcd35, &env);
        for _ in 0..100 {
            if !starting.as_ref().is_err_and(busy) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            starting = Starting::begin(&program, Version::Etcd35, &env);
        }
        Ok((starting?.ready()?, folder))
    }

    #[test]
    fn it_serves_until_it_is_dropped() {
        let script = "#!/bin/sh\necho http://$1; cat; echo gone >$WHERE/gone\n";
        let (shared, folder) = with(script).unwrap();
        assert_eq!(shared.endpoints, "http://3.5");
        assert!(!folder.path().join("gone").exists());
        drop(shared);
        assert!(folder.path().join("gone").exists());
    }

    #[test]
    fn one_that_ends_instead_is_an_error() {
        assert!(with("#!/bin/sh\nexit 1\n").is_err());
    }
}
