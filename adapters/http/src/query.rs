//! Query strings, decoded once and strictly.
//!
//! axum's own extractor replaces bytes that are not UTF-8, so that `%FF` and `%FE` become one
//! name (trap 43). Two names must never become one lock.

use dlock_domain::LockError;

use crate::problem::Problem;

/// The parameters of a query string, each to be taken once.
#[derive(Debug)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Splits and decodes a query string; `None` and empty parts count as nothing.
    ///
    /// # Errors
    /// 400 for a bad escape or bytes that are not UTF-8; 422 for a name that comes twice.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Problem> {
        let mut params: Vec<(String, String)> = Vec::new();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode(name)?, decode(value)?);
            if params.iter().any(|(known, _)| *known == name) {
                return Err(Problem::invalid(name, "must come only once"));
            }
            params.push((name, value));
        }
        Ok(Self(params))
    }

    /// Takes a parameter out.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Takes a parameter out that must be there.
    ///
    /// # Errors
    /// 422 naming it.
    pub(crate) fn require(&mut self, name: &'static str) -> Result<String, Problem> {
        self.take(name).ok_or_else(|| LockError::invalid(name, "is missing").into())
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// 422 naming the parameter that nobody took.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Problem::invalid(name, "is not a parameter of this call")),
        }
    }
}

fn decode(text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => match (rest.next().and_then(digit), rest.next().and_then(digit)) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(Problem::malformed_query("a % is not followed by two digits")),
            },
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| Problem::malformed_query("the query is not UTF-8"))
}

fn digit(byte: u8) -> Option<u8> {
    let value = char::from(byte).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_once() {
        for (text, meant) in [
            ("a+b", "a b"),
            ("a%20b", "a b"),
            ("a%2Bb", "a+b"),
            ("%2525", "%25"),
            ("%252F", "%2F"),
            ("%2f", "/"),
            ("%C3%A9", "\u{e9}"),
            ("e%CC%81", "e\u{301}"),
            ("%3Fx%3D1", "?x=1"),
            ("?x=1", "?x=1"),
            ("%F0%9F%94%92", "\u{1f512}"),
            ("%00", "\0"),
            ("", ""),
        ] {
            let mut params = Params::parse(Some(&format!("name={text}"))).unwrap();
            assert_eq!(params.take("name").as_deref(), Some(meant), "{text}");
        }
    }

    #[test]
    fn c31_what_is_not_utf8_or_not_an_escape_is_refused() {
        for bad in ["%FF", "%FE", "%C3", "%ED%A0%80", "%", "%2", "%zz", "%+1", "%2%46", "a%\u{e9}"]
        {
            assert!(Params::parse(Some(&format!("name={bad}"))).is_err(), "{bad}");
            assert!(Params::parse(Some(&format!("{bad}=x"))).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_parameter_is_taken_once_or_refused() {
        assert!(Params::parse(Some("a=1&%61=2")).is_err());
        let mut params = Params::parse(Some("a=1&&b=2&")).unwrap();
        assert_eq!(params.take("a").as_deref(), Some("1"));
        assert!(params.take("a").is_none());
        assert!(params.finish().is_err());
        assert!(Params::parse(None).unwrap().finish().is_ok());
    }
}
