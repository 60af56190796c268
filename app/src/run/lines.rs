//! Bytes of a stream, put together to lines. Total: any bytes are lines, or an error.

/// The longest line either side says.
const LONGEST: usize = 128;

/// A line was longer than any that is ever said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// What has arrived and was not taken yet.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<u8>);

impl Lines {
    /// Takes in bytes; answers the lines that they complete.
    ///
    /// # Errors
    /// When a line grows beyond all bounds; what is kept stays bounded.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                // What is not UTF-8 is no message, and its reader says so.
                lines.push(String::from_utf8_lossy(&self.0).into_owned());
                self.0.clear();
            } else if self.0.len() < LONGEST {
                self.0.push(byte);
            } else {
                return Err(TooLong);
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_are_cut() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(b"ki").unwrap(), Vec::<String>::new());
        assert_eq!(lines.push(b"ll\nsignal 1").unwrap(), ["kill"]);
        assert_eq!(lines.push(b"5\n\n").unwrap(), ["signal 15", ""]);
        assert_eq!(lines.push(&[0xff, b'\n']).unwrap(), ["\u{fffd}"]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(&[b'x'; 128]), Ok(vec![]));
        assert_eq!(lines.push(b"x"), Err(TooLong));
    }
}
