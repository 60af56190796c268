//! Places in a listing, as a server writes them: a name's bytes as lower-case hexadecimal digits.
//!
//! To clients of the API a cursor is opaque; the port names a place by its lock's name, so this
//! client knows how one is written. One that it can't read it does without.

use core::fmt::Write;

use dlock_domain::LockName;

/// The cursor that goes on after this name.
pub(crate) fn write(after: &LockName) -> String {
    after.as_str().bytes().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The name that a cursor goes on after.
pub(crate) fn read(text: &str) -> Option<LockName> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let bytes = pairs.map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    LockName::new(&String::from_utf8(bytes).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c30_a_cursor_is_read_as_it_was_written() {
        for name in ["a", "a/b", "%2F", "e\u{301}", "\u{e9}", "\u{1f512}", &"x".repeat(512)] {
            let name = LockName::new(name).unwrap();
            assert_eq!(read(&write(&name)), Some(name));
        }
        assert_eq!(write(&LockName::new("a/\u{e9}").unwrap()), "612fc3a9");
    }

    #[test]
    fn anything_else_is_no_cursor() {
        for bad in ["", "6", "6g", "616", "ff", "00", "\u{e9}\u{e9}", &"61".repeat(513)] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
