//! A `dlock serve` that does not outlive the scan, whichever way that ends.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

/// Who keeps the server: a shell that waits for the end of its input, which comes when the scan
/// drops it, ends, or is killed. Then the server is asked to stop and its data are removed. Signals
/// from a terminal reach the shell too and must not end it before.
const KEEPER: &str = r#"
data=$(mktemp -d) || exit 1
"$0" serve --listen 127.0.0.1:0 --data-dir "$data" &
server=$!
trap '' HUP INT TERM
exec >&-
read -r _
kill "$server"
wait "$server"
code=$?
rm -rf -- "$data"
exit "$code"
"#;

/// A running server.
pub(super) struct Server {
    keeper: Child,
    url: String,
}

impl Server {
    /// Starts it on a free port, with a store of its own in a temporary folder. Its log goes into
    /// `place`.
    ///
    /// # Errors
    /// If it does not say where it listens.
    pub(super) fn start(binary: &Path, place: &Path) -> anyhow::Result<Self> {
        let log = place.join("server.log");
        let mut command = Command::new("sh");
        command.arg("-c").arg(KEEPER).arg(binary);
        // What this machine is configured for is not what is scanned.
        for (name, _) in env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"DLOCK_") {
                command.env_remove(name);
            }
        }
        let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut keeper = command.spawn().context("cannot start sh")?;
        let greeting = keeper.stdout.take().context("its output is not captured")?;
        let mut line = String::new();
        let read = BufReader::new(greeting).read_line(&mut line);
        let mut server = Self { keeper, url: String::new() };
        match url(&line) {
            Some(url) if read.is_ok() => server.url = url.to_owned(),
            _ => {
                server.stop()?;
                let said = fs::read_to_string(&log).unwrap_or_default();
                bail!("the server does not start:\n{said}");
            }
        }
        Ok(server)
    }

    /// Where it listens.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Stops it and removes its data; whether it had run until now and ended well.
    ///
    /// # Errors
    /// If its end cannot be waited for.
    pub(super) fn stop(mut self) -> anyhow::Result<bool> {
        drop(self.keeper.stdin.take());
        Ok(self.keeper.wait().context("cannot wait for the server")?.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The address in a server's greeting.
fn url(greeting: &str) -> Option<&str> {
    let at = greeting.find("http://")?;
    greeting[at..].split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_greeting_has_an_address() {
        assert_eq!(url("dlock serves on http://127.0.0.1:71\n"), Some("http://127.0.0.1:71"));
        assert_eq!(url(""), None);
    }

    /// Stands for a server: greets, notes where its data is, and ends well when it is asked to.
    #[cfg(unix)]
    const STAND_IN: &str = r#"#!/bin/sh
trap 'exit 0' TERM
echo "$5" >"$(dirname "$0")/data"
echo "serves on http://127.0.0.1:1"
while :; do sleep 0.01; done
"#;

    #[cfg(unix)]
    fn stand_in(script: &str) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt as _;
        let tree = testing::tree(&[("server", script)]);
        let file = tree.path().join("server");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        tree
    }

    #[cfg(unix)]
    #[test]
    fn it_is_stopped_and_its_data_removed_also_when_it_is_dropped() {
        // Its data is the fifth argument: serve --listen ADDRESS --data-dir DATA.
        let tree = stand_in(STAND_IN);
        for dropped in [false, true] {
            let server = Server::start(&tree.path().join("server"), tree.path()).unwrap();
            assert_eq!(server.url(), "http://127.0.0.1:1");
            let data = fs::read_to_string(tree.path().join("data")).unwrap();
            assert!(Path::new(data.trim()).is_dir());
            if dropped {
                drop(server);
            } else {
                assert!(server.stop().unwrap());
            }
            assert!(!Path::new(data.trim()).exists());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_server_that_does_not_start_is_told_with_its_words() {
        let tree = stand_in("#!/bin/sh\necho 'no room' >&2\nexit 69\n");
        let started = Server::start(&tree.path().join("server"), tree.path());
        let Err(error) = started else { panic!("it started") };
        assert!(error.to_string().contains("no room"), "{error}");
    }
}
