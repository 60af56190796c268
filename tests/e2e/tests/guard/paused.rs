//! A holder process that is stopped in the middle of an update for longer than its lease (C10).

use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use dlock_e2e::{eventually, register::Register, server::Server, signal, stopped, unconfigured};
use rustix::process::Signal;

/// Its lease: shorter than the pause.
const TTL_MS: &str = "2000";

/// Updates that the successor makes during the pause.
const MEANWHILE: u64 = 3;

/// A `careless-holder`. Dropping it leaves nothing running.
struct Holder {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Holder {
    fn start(server: SocketAddr, folder: &Path, mode: &str, updates: u64) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_careless-holder"));
        command.arg(server.to_string()).arg(folder).args([mode, TTL_MS, &updates.to_string()]);
        unconfigured(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Self { process, said }
    }

    /// The next line that it says; empty at its end.
    fn says(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What it has read, and with which token.
    fn reads(&mut self) -> (u64, u64) {
        let line = self.says();
        let words: Vec<&str> = line.split(' ').collect();
        let ["read", value, "token", token] = words[..] else { panic!("it says {line:?}") };
        (value.parse().unwrap(), token.parse().unwrap())
    }

    fn go_on(&mut self) {
        self.process.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// One update from its read to its write.
    fn updates(&mut self) -> (u64, u64) {
        let read = self.reads();
        self.go_on();
        assert_eq!((self.says(), self.says()), ("held".into(), "written".into()));
        read
    }

    fn ends(&mut self) {
        assert_eq!(self.says(), "");
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What came of a run: updates that were acknowledged, and the number at the end.
struct Ended {
    acknowledged: u64,
    value: u64,
}

/// A holder reads, is stopped before it writes, and goes on when its lock has long had another
/// holder, who made updates of its own.
fn run(mode: &str) -> Ended {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&place.path().join("data"), &[]);
    let start = |updates| Holder::start(server.address(), place.path(), mode, updates);
    let mut first = start(2);
    first.updates();
    let (value, token) = first.reads();
    assert_eq!(value, 1);
    let pid = first.process.id();
    signal(pid, Signal::STOP);
    eventually("it is stopped", || stopped(pid));
    // What it will do as soon as it runs again.
    first.go_on();

    // Granted when the lease has ended, since nobody keeps it any more.
    let mut second = start(MEANWHILE);
    for made in 0..MEANWHILE {
        let (read, newer) = second.updates();
        assert_eq!(read, 1 + made);
        assert!(newer > token);
    }
    second.ends();
    assert_eq!(Register::at(place.path(), false).look().unwrap(), 1 + MEANWHILE);
    let mut acknowledged = 1 + MEANWHILE;

    signal(pid, Signal::CONT);
    assert_eq!(first.says(), "not held", "from the first instruction after waking");
    match first.says().as_str() {
        "written" => acknowledged += 1,
        "refused" => {
            // The lock anew, and the update with it.
            let (read, newest) = first.updates();
            assert_eq!(read, 1 + MEANWHILE);
            assert!(newest > token);
            acknowledged += 1;
        }
        other => panic!("it says {other:?}"),
    }
    first.ends();
    Ended { acknowledged, value: Register::at(place.path(), false).look().unwrap() }
}

#[test]
fn c10_without_fencing_a_pause_loses_updates() {
    let ended = run("unfenced");
    // The control: a lease alone is not mutual exclusion, and this test can see it.
    assert_eq!(ended.acknowledged, 2 + MEANWHILE);
    assert_eq!(ended.value, 2, "what was written meanwhile is overwritten");
}

#[test]
fn c10_with_fencing_a_pause_loses_none() {
    let ended = run("fenced");
    assert_eq!(ended.acknowledged, 2 + MEANWHILE);
    assert_eq!(ended.value, ended.acknowledged);
}
