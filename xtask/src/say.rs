//! Printing to standard output, where a reader that went away is the end of the run.

use std::fmt;
use std::io::{self, ErrorKind, Write};

/// Writes one line to standard output; ends the process with code 1 if nobody reads it any more,
/// because the outcome of the rest could not be told to anyone.
pub fn line(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    end_if_broken(writeln!(out, "{text}"));
}

/// Writes bytes to standard output as they are, at once; ends like [`line()`].
pub fn raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    end_if_broken(out.write_all(bytes).and_then(|()| out.flush()));
}

fn end_if_broken(written: io::Result<()>) {
    if is_the_end(&written) {
        std::process::exit(1);
    }
}

/// Whether a write failed because its reader is gone; other failures leave the verb running, whose
/// exit code is what counts.
fn is_the_end(written: &io::Result<()>) -> bool {
    matches!(written, Err(error) if error.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_pipe_is_the_end() {
        assert!(is_the_end(&Err(ErrorKind::BrokenPipe.into())));
        assert!(!is_the_end(&Err(ErrorKind::StorageFull.into())));
        assert!(!is_the_end(&Ok(())));
    }
}
