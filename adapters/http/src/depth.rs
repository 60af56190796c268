//! How deep a JSON text is nested.

/// Deeper than any body of ours, by far.
const LIMIT: usize = 32;

/// Whether a *valid* JSON text is nested too deeply to be one of ours. Reads it once and keeps two
/// numbers, however deep it is (C34).
pub(crate) fn is_too_deep(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > LIMIT {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c34_counts_nesting_and_not_brackets_in_text() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(!is_too_deep(&nested(LIMIT)));
        assert!(is_too_deep(&nested(LIMIT + 1)));
        assert!(!is_too_deep(&format!("[{}]", vec!["{}"; 1_000].join(","))));
        assert!(!is_too_deep(&format!(r#""{}""#, "[".repeat(1_000))));
        assert!(!is_too_deep(&format!(r#""\"{}""#, "[".repeat(1_000))));
        assert!(is_too_deep(&format!(r#"["\\",{}]"#, nested(LIMIT))));
    }
}
