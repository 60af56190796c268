//! `dlock run` at a real server: loss, silence and restarts (C3, C50 to C53).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod going_away;
mod replaced;
mod revoked;
mod swallow;
mod usual;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use dlock_e2e::{client::Client, dlock, server::Server, unconfigured};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tempfile::TempDir;

/// A server with a store of its own, and a folder to run in.
struct World {
    // Dropped before the folder that it writes to.
    server: Server,
    place: TempDir,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        Self { server: Server::start(&place.path().join("data"), &[]), place }
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    /// A program with the server in its environment and the signals that a shell would leave it.
    fn program(&self, program: &Path) -> Command {
        let mut command = Command::new("env");
        unconfigured(&mut command);
        command.arg("--default-signal=TERM,INT,HUP,QUIT").arg(program);
        command.env("DLOCK_SERVER", self.url()).env("DLOCK", dlock());
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// `dlock` with these words.
    fn dlock(&self, words: &[&str]) -> Command {
        let mut command = self.program(&dlock());
        command.args(words);
        command
    }

    /// `dlock run job OPTIONS -- sh -c SCRIPT`.
    fn run(&self, options: &[&str], script: &str) -> Command {
        self.dlock(&[&["run", "job"], options, &["--", "sh", "-c", script]].concat())
    }

    /// Starts a script that says one line first.
    fn start(&self, options: &[&str], script: &str) -> Started {
        let mut command = self.run(options, script);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        Started { child, output }
    }

    /// Boot-clock readings that a script appended to a file, in hundredths of a second.
    fn readings(&self, file: &str) -> Vec<u64> {
        let text = std::fs::read_to_string(self.path().join(file)).unwrap_or_default();
        text.lines().filter_map(|line| line.replace('.', "").parse().ok()).collect()
    }

    /// The earliest end that the lease of `job` can have, in hundredths of a second of the boot
    /// clock, by what the store itself says: the server need not run.
    fn earliest_end(&self) -> u64 {
        let before = uptime();
        let data = self.path().join("data");
        let words = ["inspect", "job", "--json", "--data-dir", data.to_str().unwrap()];
        let output = self.dlock(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let info: Value = serde_json::from_slice(&output.stdout).unwrap();
        before + info["expires_in_ms"].as_u64().unwrap() / 10
    }
}

/// The boot clock, in hundredths of a second.
fn uptime() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    text.split(' ').next().unwrap().replace('.', "").parse().unwrap()
}

/// A command under the lock. Dropping it leaves nothing running.
struct Started {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Started {
    /// Returns when every process that holds the command's standard output has ended.
    fn all_gone(&mut self) {
        let mut ready = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut ready, Some(&patience)).unwrap(), 1, "processes are left");
        self.output.read_to_end(&mut Vec::new()).unwrap();
    }

    /// Its exit code, and what was said about it.
    fn end(&mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Its supervisor then ends the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Appends the boot clock to a file, again and again, deaf to every polite request; once in the
/// command's group and once in a group of its own.
const TICKING: &str = r#"
    trap "" TERM INT HUP
    tick='while :; do read now _ < /proc/uptime; echo $now >> ticks; sleep 0.02; done'
    sh -c "$tick" &
    timeout 1000 sh -c "$tick" &
    echo ready
    wait; wait; sleep 1000
"#;
