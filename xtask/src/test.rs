//! THE test command: builds the `dlock` binary, runs every test, and says how many passed.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;

use crate::stopwatch::Stopwatch;
use crate::{cargo, graph, say};

/// Where tests find the binary they run.
pub const TEST_DLOCK_BIN: &str = "TEST_DLOCK_BIN";

/// How often the end of cargo is looked for while no output comes.
const QUIET: Duration = Duration::from_millis(500);

/// Sums over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// Builds the binary, runs `cargo test` with these further arguments, prints the sums as the last
/// line; whether everything passed. With `-p` among the arguments only those packages are tested,
/// else the whole workspace is.
///
/// # Errors
/// If the workspace cannot be read or cargo cannot be started.
pub fn run(args: &[String]) -> anyhow::Result<bool> {
    let watch = Stopwatch::start();
    let metadata = graph::metadata()?;
    let root = metadata.workspace_root.as_std_path();
    let binary = format!("dlock{}", std::env::consts::EXE_SUFFIX);
    let binary = metadata.target_directory.join("debug").join(binary);
    let built = cargo::succeeds(&mut cargo::command(root, ["build", "-p", "dlock"]))?;
    let (succeeded, counts) = if built {
        let mut command = cargo::command(root, arguments(args));
        echoed(command.env(TEST_DLOCK_BIN, binary), &mut say::raw)?
    } else {
        say::line(format_args!("dlock could not be built, so no test was run"));
        (false, Counts::default())
    };
    if counts.ignored > 0 {
        say::line(format_args!("{} ignored", counts.ignored));
    }
    say::line(format_args!("elapsed {:.1} s", watch.seconds()));
    say::line(format_args!("{} passed, {} failed", counts.passed, counts.failed));
    Ok(succeeded && counts.failed == 0)
}

/// The arguments of cargo. `--workspace` would silently win over `-p`.
fn arguments(extra: &[String]) -> Vec<&str> {
    let for_cargo = extra.iter().take_while(|arg| *arg != "--");
    let chosen = |arg: &String| arg.starts_with("-p") || arg.starts_with("--package");
    let all = if for_cargo.into_iter().any(chosen) { None } else { Some("--workspace") };
    let base = std::iter::once("test").chain(all).chain(["--no-fail-fast"]);
    base.chain(extra.iter().map(String::as_str)).collect()
}

/// Runs a command, passes its output on line by line, and sums up what the tests say in it.
fn echoed(command: &mut Command, echo: &mut dyn FnMut(&[u8])) -> anyhow::Result<(bool, Counts)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let lines = lines_of(child.stdout.take().context("the output is not captured")?);
    let mut counts = Counts::default();
    loop {
        match next(&lines, &mut child)? {
            Next::Line(line) => {
                echo(&line);
                counts.add(&String::from_utf8_lossy(&line));
            }
            Next::LeftOpen => {
                echo(b"a process that a test started still holds the output open\n");
                break;
            }
            Next::End => break,
        }
    }
    Ok((child.wait()?.success(), counts))
}

/// The lines of an output, read on a thread of its own; the channel ends with the output.
fn lines_of(output: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let mut output = BufReader::new(output);
        loop {
            let mut line = Vec::new();
            match output.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) if sender.send(line).is_err() => break,
                Ok(_) => {}
            }
        }
    });
    lines
}

/// What comes next in an output.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Line(Vec<u8>),
    /// The command is gone and all is quiet, yet somebody could still write.
    LeftOpen,
    End,
}

/// Waits for the next line or the end. A process that a test left behind may hold the output open
/// for ever, so quiet is waited for no longer than the command lives.
fn next(lines: &Receiver<Vec<u8>>, child: &mut Child) -> anyhow::Result<Next> {
    let mut gone = false;
    loop {
        match lines.recv_timeout(QUIET) {
            Ok(line) => return Ok(Next::Line(line)),
            Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
            Err(RecvTimeoutError::Timeout) if gone => return Ok(Next::LeftOpen),
            Err(RecvTimeoutError::Timeout) => gone = child.try_wait()?.is_some(),
        }
    }
}

impl Counts {
    /// Adds what a line says, if it is the sum of one test binary.
    fn add(&mut self, line: &str) {
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        let words: Vec<_> = result.split([' ', ';', '.', '\n']).collect();
        for pair in words.windows(2) {
            let sum = match pair[1] {
                "passed" => &mut self.passed,
                "failed" => &mut self.failed,
                "ignored" => &mut self.ignored,
                _ => continue,
            };
            *sum += pair[0].parse::<u64>().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; \
                      finished in 0.42s\n";
    const BAD: &str = "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured\n";

    fn owned(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[test]
    fn sums_are_taken_over_all_result_lines_and_no_others() {
        let mut counts = Counts::default();
        for line in [OK, "test a_result_of_5 passed ... ok\n", BAD, "9 passed; 9 failed\n"] {
            counts.add(line);
        }
        assert_eq!(counts, Counts { passed: 14, failed: 3, ignored: 1 });
    }

    #[test]
    fn the_whole_workspace_is_tested_unless_packages_are_named() {
        assert_eq!(arguments(&[]), ["test", "--workspace", "--no-fail-fast"]);
        let named = owned(&["-p", "dlock"]);
        assert_eq!(arguments(&named), ["test", "--no-fail-fast", "-p", "dlock"]);
        let harness = owned(&["--", "-p"]);
        assert_eq!(arguments(&harness), ["test", "--workspace", "--no-fail-fast", "--", "-p"]);
    }

    #[cfg(unix)]
    #[test]
    fn the_exit_code_of_the_command_is_kept_beside_the_sums() {
        let script = format!("printf '{BAD}'; exit 3");
        let mut said = Vec::new();
        let mut echo = |line: &[u8]| said.extend_from_slice(line);
        let mut command = Command::new("sh");
        let (succeeded, counts) = echoed(command.args(["-c", &script]), &mut echo).unwrap();
        assert!(!succeeded);
        assert_eq!(said, BAD.as_bytes());
        assert_eq!(counts, Counts { passed: 2, failed: 3, ignored: 0 });
    }

    #[cfg(unix)]
    #[test]
    fn a_process_left_behind_does_not_keep_the_run_from_ending() {
        // `cat` holds the output until its input ends, which it does when `input` is dropped.
        let mut left = Command::new("sh");
        left.args(["-c", "exec 3<&0; cat <&3 & echo started"]);
        let mut child = left.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let lines = lines_of(child.stdout.take().unwrap());
        assert_eq!(next(&lines, &mut child).unwrap(), Next::Line(b"started\n".to_vec()));
        assert_eq!(next(&lines, &mut child).unwrap(), Next::LeftOpen);
        drop(input);
        assert!(lines.recv().is_err(), "the output ends once nobody holds it");
    }
}
