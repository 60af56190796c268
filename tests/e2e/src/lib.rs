//! What tests of real processes share: where the binary is, how to wait for something without
//! guessing how long it takes, and what `/proc` says of a process.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`server`] | a `dlock serve` that can be killed, stopped and started again |
//! | [`etcd`] | what makes a server keep its locks in a real etcd cluster |
//! | [`postgres`] | the same in a real PostgreSQL database; psql, and roles of a test's own |
//! | [`client`], [`raw`] | JSON over HTTP; and bytes on a socket, for clients that misbehave |
//! | [`crowd`] | thousands of such clients |
//! | [`remote`] | guards over the HTTP client |
//! | [`register`] | a resource with a high-water mark, shared by processes |
//! | [`load`] | many clients whose every call is written down for the judge |
//! | [`readme`] | the examples of a page, so that they can be run |

pub mod client;
pub mod crowd;
pub mod etcd;
pub mod load;
pub mod postgres;
pub mod raw;
pub mod readme;
pub mod register;
pub mod remote;
pub mod server;

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// The `dlock` binary: `TEST_DLOCK_BIN`, else the one in the target folder that the running test is in.
///
/// # Panics
/// When there is none: a test that silently tests nothing would be worse.
#[must_use]
#[expect(clippy::panic, reason = "only tests call it")]
pub fn dlock() -> PathBuf {
    let found = match std::env::var_os("TEST_DLOCK_BIN") {
        Some(path) => Some(PathBuf::from(path)),
        // target/debug/deps/<test> -> target/debug/dlock
        None => std::env::current_exe()
            .ok()
            .and_then(|test| Some(test.parent()?.parent()?.join("dlock"))),
    };
    match found.filter(|path| path.is_file()) {
        Some(path) => path,
        None => panic!("there is no dlock binary to test: run `cargo build -p dlock` first"),
    }
}

/// Takes every variable of dlock's out of a command's environment: what a test was started with
/// must neither configure the binary nor be refused by it (C5).
pub fn unconfigured(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"DLOCK_") {
            command.env_remove(name);
        }
    }
    command
}

/// Waits until something is so. The bound is generous and only there to end a failing test.
///
/// # Panics
/// When it is not so after half a minute.
#[expect(clippy::panic, reason = "only tests call it")]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}

/// Sends a signal to a process.
///
/// # Panics
/// When there is no such process.
#[expect(clippy::panic, reason = "only tests call it")]
pub fn signal(pid: u32, signal: Signal) {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if number.is_none_or(|number| kill_process(number, signal).is_err()) {
        panic!("there is no process {pid} to signal");
    }
}

/// Whether a process runs: zombies do not.
#[must_use]
pub fn runs(pid: u32) -> bool {
    status(pid, "State:").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Whether a process is stopped.
#[must_use]
pub fn stopped(pid: u32) -> bool {
    status(pid, "State:").is_some_and(|state| state.starts_with('T'))
}

/// Whether a process catches a signal, so that it may be sent without killing it.
#[must_use]
pub fn catches(pid: u32, signal: Signal) -> bool {
    let mask = status(pid, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// How many descriptors a process has open.
#[must_use]
pub fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The most memory that a process has had, in KiB.
#[must_use]
pub fn peak_memory_kib(pid: u32) -> Option<u64> {
    status(pid, "VmHWM:")?.split(' ').next()?.parse().ok()
}

/// A line of a process's `status` file.
fn status(pid: u32, line: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status"));
    let found = text.ok()?.lines().find_map(|found| found.strip_prefix(line).map(str::to_owned));
    found.map(|value| value.trim().to_owned())
}
