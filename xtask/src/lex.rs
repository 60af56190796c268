//! Tells Rust code from its comments and string literals, without parsing it.
//!
//! Offsets are kept: the code view has the length of the source, with blanks where comments and
//! the contents of strings were, so that a line found in it is the line in the file.

/// A source file seen as code without comments and strings, and as its strings alone.
#[derive(Debug)]
pub struct Views {
    /// The source with comments, and what stands between quotes, replaced by blanks.
    pub code: String,
    /// Every string literal: the byte offset of its content, and the content as written.
    pub strings: Vec<(usize, String)>,
}

/// Splits a Rust source into its [`Views`].
#[must_use]
pub fn views(source: &str) -> Views {
    let bytes = source.as_bytes();
    let mut code = bytes.to_vec();
    let mut strings = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + block_comment_len(rest)
        } else if let Some((open, len)) = string_len(bytes, at) {
            let content = at + open..at + open + len;
            strings.push((content.start, source[content.clone()].to_owned()));
            blank(&mut code[content.clone()]);
            // Past the closing quote, if the file does not end before it.
            at = (content.end + open_hashes(&bytes[at..content.start]) + 1).min(bytes.len());
            continue;
        } else {
            at += char_len(rest).unwrap_or(1);
            continue;
        };
        blank(&mut code[at..end]);
        at = end;
    }
    Views { code: String::from_utf8_lossy(&code).into_owned(), strings }
}

/// Blanks bytes but keeps line ends; a character is blanked as a whole, so UTF-8 stays UTF-8.
fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

/// The length of a block comment with the ones nested in it.
fn block_comment_len(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// If a string literal starts here: the length of what opens it, and of its content.
fn string_len(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let rest = &bytes[at..];
    if rest[0] == b'"' {
        return Some((1, escaped_len(&rest[1..])));
    }
    // `r`, `br` or `cr` opens a raw string only where no identifier goes on.
    if at > 0 && crate::grep::is_word_byte(&bytes[at - 1]) {
        return None;
    }
    let prefix = usize::from(matches!(rest[0], b'b' | b'c'));
    if rest.get(prefix) != Some(&b'r') {
        return None;
    }
    let hashes = rest[prefix + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + 1 + hashes + 1;
    if rest.get(open - 1) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let content = &rest[open..];
    let len = content.windows(close.len()).position(|window| window == close);
    Some((open, len.unwrap_or(content.len())))
}

fn open_hashes(open: &[u8]) -> usize {
    open.iter().filter(|byte| **byte == b'#').count()
}

/// The length up to the closing quote, with escapes stepped over.
fn escaped_len(content: &[u8]) -> usize {
    let mut at = 0;
    while at < content.len() && content[at] != b'"' {
        at += if content[at] == b'\\' { 2 } else { 1 };
    }
    at.min(content.len())
}

/// If a character literal starts here, its length; a lifetime is none.
fn char_len(rest: &[u8]) -> Option<usize> {
    if rest[0] != b'\'' {
        return None;
    }
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|byte| *byte == b'\'')?;
        return Some(3 + close + 1);
    }
    // At most one character of four bytes stands between the quotes.
    let close = rest.iter().skip(2).take(4).position(|byte| *byte == b'\'')?;
    let content = std::str::from_utf8(&rest[1..2 + close]).ok()?;
    (content.chars().count() == 1).then_some(2 + close + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_vanish_and_lines_stay() {
        let source = "a // b\n/* c /* d */ e\n */ f";
        let code = views(source).code;
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "f"]);
        assert_eq!((code.len(), code.lines().count()), (source.len(), 3));
    }

    #[test]
    fn strings_are_taken_out_of_the_code_with_their_offsets() {
        let source = r####"f("a\"; // x", r#"b"c"#, br"d\", b"e"); // "g""####;
        let views = views(source);
        let contents: Vec<_> = views.strings.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(contents, [r#"a\"; // x"#, r#"b"c"#, r"d\", "e"]);
        for (at, content) in &views.strings {
            assert_eq!(&source[*at..at + content.len()], content);
        }
        assert!(views.code.trim_end().ends_with(");"));
        assert_eq!(views.code.len(), source.len());
    }

    #[test]
    fn a_quote_in_a_character_opens_no_string_and_a_lifetime_no_character() {
        let source = "fn f<'a>(x: &'a str) { g('\"', '\\'', 'é', \"s\") } // t";
        let views = views(source);
        assert_eq!(views.strings, [(source.find("s\")").unwrap(), "s".to_owned())]);
        assert!(views.code.contains("fn f<'a>(x: &'a str)"));
        assert!(views.code.trim_end().ends_with('}'));
    }

    #[test]
    fn what_is_never_closed_ends_with_the_file() {
        assert_eq!(views("x \"abc").strings, [(3, "abc".to_owned())]);
        assert_eq!(views("x \"abc\\").strings, [(3, "abc\\".to_owned())]);
        assert_eq!(views("x r#\"abc\"").strings, [(5, "abc\"".to_owned())]);
        assert_eq!(views("x /* abc").code.trim_end(), "x");
        assert!(views("").strings.is_empty());
    }

    #[test]
    fn an_identifier_that_ends_in_r_opens_no_raw_string() {
        assert_eq!(views("bar\"x\\\"y\"").strings, [(4, "x\\\"y".to_owned())]);
        assert_eq!(views("r#type + 1").code, "r#type + 1");
    }
}
