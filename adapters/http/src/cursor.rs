//! Where a listing goes on: opaque to clients, and safe in a URL.

use core::fmt::Write;

use dlock_domain::{LockError, LockName, Result};

/// The text of a cursor, for the API's description.
pub(crate) const PATTERN: &str = "^([0-9a-f]{2})+$";
/// The longest cursor, in digits.
pub(crate) const MAX_LENGTH: usize = 2 * LockName::MAX_BYTES;

/// The cursor that goes on after a lock: its name's bytes as lower-case hexadecimal digits.
pub(crate) fn write(after: &LockName) -> String {
    after.as_str().bytes().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads what [`write`] wrote, and nothing else: each name has one cursor.
///
/// # Errors
/// `InvalidArgument` naming `cursor`.
pub(crate) fn read(text: &str) -> Result<LockName> {
    let wrong = || LockError::invalid("cursor", "is not one that a listing returned");
    if text.len() > MAX_LENGTH || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let digits = text.bytes().map(digit).collect::<Option<Vec<u8>>>().ok_or_else(wrong)?;
    let bytes = digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit));
    let name = String::from_utf8(bytes.collect()).map_err(|_| wrong())?;
    LockName::new(&name).map_err(|_| wrong())
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c30_every_name_has_a_cursor_of_its_own() {
        let longest = "\u{1f512}".repeat(128);
        for name in ["a", "a/", "//", "%2F", "a b", "?x=1&y", "\u{e9}", "e\u{301}", &longest] {
            let name = LockName::new(name).unwrap();
            let cursor = write(&name);
            assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{cursor}");
            assert!(cursor.len() <= MAX_LENGTH);
            assert_eq!(read(&cursor).unwrap(), name);
        }
    }

    #[test]
    fn c31_nothing_else_is_a_cursor() {
        let too_long = "61".repeat(513);
        for bad in [
            "", "6", "616", "6A", "0x61", "+1", " 61", "61 ", "zz", "00", "610a", "7f", "c285",
            "ff", "c3", "eda080", "c080", "\u{e9}", &too_long,
        ] {
            assert_eq!(read(bad).unwrap_err().field(), Some("cursor"), "{bad:?}");
        }
    }
}
