//! Standard output. A closed pipe is no error: whoever reads has read enough. Anything else that
//! keeps an answer from being written is said, and is no success.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use super::say;
use crate::run::exit;

/// The width of the terminal that standard output is; `None`: it is none.
pub(crate) fn terminal_width() -> Option<u16> {
    let out = io::stdout();
    out.is_terminal().then(|| {
        let size = rustix::termios::tcgetwinsize(&out);
        // Some do not know it themselves.
        size.map_or(0, |size| size.ws_col)
    })
}

/// Writes text whose colours are left out where they would not be seen, or nobody wants them
/// (`NO_COLOR`); answers `code`, or the code of an answer that could not be written.
pub(crate) fn coloured(text: &str, code: u8) -> u8 {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    concluded(out.write_all(text.as_bytes()).and_then(|()| out.flush()), code)
}

/// Writes bytes as they are; answers as [`coloured`].
pub(crate) fn plain(bytes: &[u8], code: u8) -> u8 {
    let mut out = io::stdout().lock();
    concluded(out.write_all(bytes).and_then(|()| out.flush()), code)
}

fn concluded(written: io::Result<()>, code: u8) -> u8 {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(format_args!("the answer cannot be written: {error}"));
            // What the answer would have said counts for more than that nobody could read it.
            if code == 0 { exit::CANNOT_EXECUTE } else { code }
        }
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closed_pipe_is_no_failure() {
        let ended = |kind: ErrorKind, code| concluded(Err(kind.into()), code);
        assert_eq!(ended(ErrorKind::BrokenPipe, 0), 0);
        assert_eq!(ended(ErrorKind::BrokenPipe, 1), 1);
        assert_eq!(ended(ErrorKind::StorageFull, 0), 126);
        assert_eq!(ended(ErrorKind::StorageFull, 75), 75);
        assert_eq!(concluded(Ok(()), 79), 79);
    }
}
