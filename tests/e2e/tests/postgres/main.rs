//! `dlock serve` with its locks in a PostgreSQL database, and the commands about that.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod credentials;
mod failover;
mod refused;
mod roles;
mod serving;

use std::process::{Command, Output, Stdio};

use dlock_e2e::{dlock, server::Server, unconfigured};
use serde_json::Value;

/// What a command that has ended said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

/// `dlock` with these words, and nothing of ours in its environment but this.
fn said(words: &[&str], variables: &[(&str, &str)]) -> Said {
    let mut command = Command::new(dlock());
    unconfigured(&mut command).args(words).envs(variables.iter().copied()).stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// A server on these options.
fn serve(place: &std::path::Path, options: &[String]) -> Server {
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    Server::start(place, &options)
}

/// A command of the command line at this server, with `--json`; what it prints, after it has ended
/// with this code.
#[track_caller]
fn json(server: &Server, words: &[&str], code: i32) -> Value {
    let address = format!("http://{}", server.address());
    let said = said(&[words, &["--json"]].concat(), &[("DLOCK_SERVER", &address)]);
    assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
    serde_json::from_str(&said.out).unwrap()
}

/// The token of a grant.
fn token(grant: &Value) -> u64 {
    grant["fencing_token"].as_u64().unwrap()
}
