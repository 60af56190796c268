//! Licence expressions, as far as packages use them: `OR`, `AND`, `WITH`, parentheses, and the
//! older `/` for `OR`. `AND` binds tighter than `OR`.

/// Whether an expression can be met with allowed licences alone: of an `OR` one side is enough, of
/// an `AND` both are needed. An exception is part of its licence: `X WITH Y` is allowed only if
/// that is listed.
///
/// # Errors
/// If the text is not such an expression; says where reading it stopped.
pub fn is_met(expression: &str, allowed: &[&str]) -> Result<bool, String> {
    let spaced = ["(", ")", "/"]
        .iter()
        .fold(expression.to_owned(), |text, sign| text.replace(sign, &format!(" {sign} ")));
    let tokens: Vec<_> = spaced.split_whitespace().collect();
    let mut parser = Parser { tokens: &tokens, allowed };
    let met = parser.any()?;
    match parser.tokens {
        [] => Ok(met),
        [rest, ..] => Err(format!("`{rest}` is one too many")),
    }
}

struct Parser<'a> {
    tokens: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn take(&mut self, words: &[&str]) -> bool {
        let taken = self.tokens.first().is_some_and(|token| words.contains(token));
        if taken {
            self.tokens = &self.tokens[1..];
        }
        taken
    }

    fn any(&mut self) -> Result<bool, String> {
        let mut met = self.all()?;
        while self.take(&["OR", "/"]) {
            met |= self.all()?;
        }
        Ok(met)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut met = self.one()?;
        while self.take(&["AND"]) {
            met &= self.one()?;
        }
        Ok(met)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take(&["("]) {
            let met = self.any()?;
            return if self.take(&[")"]) { Ok(met) } else { Err("a `)` is missing".into()) };
        }
        let licence = self.name()?;
        if self.take(&["WITH"]) {
            let whole = format!("{licence} WITH {}", self.name()?);
            return Ok(self.allowed.contains(&whole.as_str()));
        }
        Ok(self.allowed.contains(&licence))
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.next() {
            None => Err("a licence is missing at the end".into()),
            Some(word @ ("(" | ")" | "/" | "OR" | "AND" | "WITH")) => {
                Err(format!("`{word}` stands where a licence should"))
            }
            Some(name) => Ok(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];

    #[test]
    fn an_or_needs_one_side_an_and_needs_both() {
        for (expression, met) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT", true),
            ("MIT/GPL-3.0-only", true),
            ("Apache-2.0 / MIT", true),
            ("MIT AND Apache-2.0", true),
            ("MIT AND GPL-3.0-only", false),
            ("GPL-3.0-only OR MIT AND Apache-2.0", true),
            ("MIT OR GPL-3.0-only AND GPL-2.0-only", true),
            ("(MIT OR GPL-3.0-only) AND GPL-2.0-only", false),
            ("(MIT OR GPL-3.0-only) AND (Apache-2.0)", true),
        ] {
            assert_eq!(is_met(expression, ALLOWED), Ok(met), "{expression}");
        }
    }

    #[test]
    fn an_exception_is_part_of_its_licence() {
        assert_eq!(is_met("Apache-2.0 WITH LLVM-exception", ALLOWED), Ok(true));
        assert_eq!(is_met("MIT WITH Classpath-exception-2.0", ALLOWED), Ok(false));
    }

    #[test]
    fn what_is_no_expression_is_refused_not_guessed() {
        for broken in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Apache-2.0", "MIT WITH"] {
            assert!(is_met(broken, ALLOWED).is_err(), "{broken}");
        }
    }
}
