//! Finding text by hand: byte offsets of a needle, and the line an offset is on.

/// The line of a byte offset, counted from 1.
#[must_use]
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The byte offset of every occurrence of a needle, overlapping ones left out.
#[must_use]
pub fn find_all(text: &str, needle: &str) -> Vec<usize> {
    text.match_indices(needle).map(|(at, _)| at).collect()
}

/// Like [`find_all`], without regard to the case of ASCII letters.
#[must_use]
pub fn find_all_any_case(text: &str, needle: &str) -> Vec<usize> {
    find_all(&text.to_ascii_lowercase(), &needle.to_ascii_lowercase())
}

/// Like [`find_all`], only where neither neighbour continues the identifier.
#[must_use]
pub fn find_words(text: &str, word: &str) -> Vec<usize> {
    let whole = |at: &usize| {
        let before = text.as_bytes()[..*at].last();
        let after = text.as_bytes().get(at + word.len());
        !before.is_some_and(is_word_byte) && !after.is_some_and(is_word_byte)
    };
    find_all(text, word).into_iter().filter(whole).collect()
}

/// Whether a byte can be part of an identifier; every byte outside ASCII counts as one.
#[must_use]
pub fn is_word_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one_and_a_newline_ends_its_own_line() {
        let text = "a\nb\n\nc";
        let lines: Vec<_> = (0..text.len()).map(|at| line_of(text, at)).collect();
        assert_eq!(lines, [1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn a_word_is_not_found_inside_a_longer_one() {
        assert_eq!(find_words("Watch Watcher unWatch Watch_ (Watch)", "Watch"), [0, 30]);
        assert_eq!(find_all("Watch Watcher", "Watch"), [0, 6]);
    }

    #[test]
    fn case_is_ignored_where_asked() {
        assert_eq!(find_all_any_case("an EtCd here", "etcd"), [3]);
        assert!(find_all("an EtCd here", "etcd").is_empty());
    }
}
