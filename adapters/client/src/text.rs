//! Text from outside, fit to be shown.

/// The longest detail that is handed on, in characters.
const MAX: usize = 1_024;

/// The text without what moves a cursor or forges a line, and not longer than anybody reads (C33).
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A value of a query string: every byte but the unreserved ones becomes an escape, so that a name
/// arrives as it is (C30).
pub(crate) fn encoded(value: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut text = String::with_capacity(value.len() * 3);
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c30_every_byte_that_means_something_is_escaped() {
        for (name, query) in [
            ("a/b", "a%2Fb"),
            ("%2F", "%252F"),
            ("a+b", "a%2Bb"),
            ("a b", "a%20b"),
            ("?x=1&y=2", "%3Fx%3D1%26y%3D2"),
            ("#", "%23"),
            ("..", ".."),
            ("\u{e9}", "%C3%A9"),
            ("e\u{301}", "e%CC%81"),
            ("\u{1f512}", "%F0%9F%94%92"),
            ("a-._~Z9", "a-._~Z9"),
            ("\"<>`{}|\\^'", "%22%3C%3E%60%7B%7D%7C%5C%5E%27"),
        ] {
            assert_eq!(encoded(name), query);
        }
    }

    #[test]
    fn c33_what_is_shown_moves_no_cursor() {
        assert_eq!(shown("a\r\n\u{1b}[31mb"), "a\u{fffd}\u{fffd}\u{fffd}[31mb");
        assert_eq!(shown(&"x".repeat(5_000)).len(), MAX);
    }
}
