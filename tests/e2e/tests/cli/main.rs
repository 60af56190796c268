//! Every command as its users meet it: at a real server and over the embedded store, with the exit
//! codes and the output of C3.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod answers;
mod choices;
mod codes;
mod fake;
mod listing;
mod locks;
mod operate;
mod papers;
mod pipes;
mod terminal;

use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use dlock_e2e::{dlock, server::Server, unconfigured};
use serde_json::Value;
use tempfile::TempDir;

/// Where the commands of a test find their locks.
struct World {
    // Dropped before the folder that it writes to.
    server: Option<Server>,
    place: TempDir,
}

/// What a command that has ended said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl World {
    /// In the embedded store.
    fn embedded() -> Self {
        Self { server: None, place: tempfile::tempdir().unwrap() }
    }

    /// At a server.
    fn server() -> Self {
        let place = tempfile::tempdir().unwrap();
        Self { server: Some(Server::start(&place.path().join("data"), &[])), place }
    }

    /// `dlock` with nothing in its environment but where the locks live.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(dlock());
        unconfigured(&mut command).args(words).stdin(Stdio::null()).current_dir(self.place.path());
        match &self.server {
            Some(server) => command.env("DLOCK_SERVER", format!("http://{}", server.address())),
            None => command.env("DLOCK_EMBEDDED_PATH", self.data()),
        };
        command
    }

    /// Runs `dlock`, to its end.
    fn dlock(&self, words: &[&str]) -> Said {
        said(&mut self.command(words))
    }

    /// Runs `dlock` with `--json`; the one line that it prints, after it has ended with this code.
    #[track_caller]
    fn json(&self, words: &[&str], code: i32) -> Value {
        let said = self.dlock(&[words, &["--json"]].concat());
        assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
        assert_eq!(said.out.lines().count(), 1, "{words:?}: {said:?}");
        // A failure is said to people too, an answer is not.
        assert_eq!(said.err.is_empty(), code == 0 || code == 1 || !is_error(&said.out), "{said:?}");
        serde_json::from_str(&said.out).unwrap()
    }

    /// Takes a free lock for an hour; its session and token.
    #[track_caller]
    fn acquire(&self, name: &str) -> (String, String) {
        grant(&self.json(&["acquire", name, "--ttl", "1h"], 0))
    }

    /// Where the store is.
    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }
}

/// Whether a problem is a failure and not an answer that happens to be no.
fn is_error(out: &str) -> bool {
    out.contains("urn:dlock:problem:")
        && !["not-granted", "not-held", "token-mismatch"].iter().any(|answer| out.contains(answer))
}

/// Runs a command to its end.
fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// The session and the token of a grant, as further commands take them.
fn grant(body: &Value) -> (String, String) {
    (body["session_id"].as_str().unwrap().to_owned(), body["fencing_token"].to_string())
}

/// What must hold at a server and in the embedded store alike.
fn everywhere(test: impl Fn(&World)) {
    test(&World::embedded());
    test(&World::server());
}
