//! Following what a command prints, line by line.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::Context;

/// How often the end of the command is looked for while no output comes.
const QUIET: Duration = Duration::from_millis(500);

/// Hands on every line of a command whose output is captured, to the end of that output, or until
/// the command is gone and all is quiet though somebody else could still write.
///
/// # Errors
/// If the output is not captured.
pub fn follow(child: &mut Child, echo: &mut dyn FnMut(&[u8])) -> anyhow::Result<()> {
    let lines = lines_of(child.stdout.take().context("the output is not captured")?);
    loop {
        match next(&lines, child)? {
            Next::Line(line) => echo(&line),
            Next::LeftOpen => {
                echo(b"a process that a test started still holds the output open\n");
                return Ok(());
            }
            Next::End => return Ok(()),
        }
    }
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn every_line_is_handed_on_as_it_is() {
        let mut command = Command::new("sh");
        command.args(["-c", "printf 'a\\n\\nb'"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = Vec::new();
        follow(&mut child, &mut |line| said.push(line.to_vec())).unwrap();
        child.wait().unwrap();
        assert_eq!(said, [b"a\n".to_vec(), b"\n".to_vec(), b"b".to_vec()]);
    }

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
