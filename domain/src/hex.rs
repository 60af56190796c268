//! 128 bits as 32 hexadecimal digits: the one text form of ids.

/// Lower-case hexadecimal, always 32 digits.
pub(crate) fn format(bits: u128) -> String {
    format!("{bits:032x}")
}

/// Reads 32 hexadecimal digits of either case, or the hyphenated 8-4-4-4-12 form that UUID tools
/// print. `None` for anything else: no signs, no blanks, no shorter forms.
pub(crate) fn parse(text: &str) -> Option<u128> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let hyphenated = text.len() == 36;
    if !hyphenated && text.len() != 32 {
        return None;
    }
    let mut bits = 0_u128;
    for (at, byte) in text.bytes().enumerate() {
        if hyphenated && HYPHENS.contains(&at) {
            if byte != b'-' {
                return None;
            }
            continue;
        }
        let digit = char::from(byte).to_digit(16)?;
        bits = (bits << 4) | u128::from(digit);
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_read_the_same_bits() {
        let bits = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
        assert_eq!(parse(&format(bits)), Some(bits));
        assert_eq!(parse("01234567-89AB-cdef-0011-223344556677"), Some(bits));
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "0123",
            "+123456789abcdef00112233445566770",
            "0123456789abcdef001122334455667g",
            "01234567x89ab-cdef-0011-223344556677",
            "0123456789abcdef-001122334455667-7--",
            "0123456789abcdef00112233445566\u{e9}",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
