//! What a key's value may be.

use std::net::SocketAddr;
use std::time::Duration;

use dlock_domain::Namespace;

use crate::wiring;

/// The kind of a value; every kind is written and read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A duration from the first to the second, in milliseconds; written `500ms`, `30s`, `5m`,
    /// `2h`, `7d`.
    Span(u64, u64),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// A number of bytes from the first to the second; written plainly or with `KiB` or `MiB`.
    Bytes(u64, u64),
    /// An address with its port.
    Address,
    /// A namespace.
    Namespace,
    /// A file or a directory.
    Path,
    /// What the names of keys in etcd begin with.
    Prefix,
    /// The address of a PostgreSQL database, which may hold a password.
    Database,
    /// A schema in PostgreSQL.
    Schema,
    /// A word of the user's.
    Word,
    /// A list of server addresses, separated by commas.
    Servers,
    /// Log levels, as `info` or `dlock=debug,warn`.
    Levels,
}

impl Kind {
    /// Checks a text.
    ///
    /// # Errors
    /// What it must be.
    pub fn check(self, text: &str) -> Result<(), String> {
        match self {
            Self::Choice(words) if words.contains(&text) => Ok(()),
            Self::Choice(words) => {
                let left_out =
                    if words == wiring::BACKENDS { wiring::left_out(text) } else { None };
                Err(left_out.unwrap_or_else(|| format!("must be one of {}", words.join(", "))))
            }
            Self::Span(least, most) => {
                let span = span(text)?;
                let within =
                    (Duration::from_millis(least)..=Duration::from_millis(most)).contains(&span);
                within.then_some(()).ok_or_else(|| {
                    format!("must be from {} to {}", write_span(least), write_span(most))
                })
            }
            Self::Count(least, most) => within(count(text)?, least, most),
            Self::Bytes(least, most) => within(bytes(text)?, least, most),
            Self::Address => text
                .parse::<SocketAddr>()
                .map(drop)
                .map_err(|_| "must be an address with its port, such as 127.0.0.1:7420".into()),
            Self::Namespace => {
                Namespace::new(text).map(drop).map_err(|error| error.detail().to_owned())
            }
            Self::Path | Self::Servers | Self::Levels | Self::Word if text.is_empty() => {
                Err("must not be empty".into())
            }
            Self::Path | Self::Levels | Self::Word => Ok(()),
            Self::Prefix => prefix(text),
            Self::Database => wiring::check_url(text),
            Self::Schema => wiring::check_schema(text),
            Self::Servers => text.split(',').try_for_each(server),
        }
    }
}

/// Reads a duration: a whole number with its unit.
///
/// # Errors
/// What it must be.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let millis_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("must be a whole number with a unit: ms, s, m, h or d".into()),
    };
    let number: u64 = number.parse().map_err(|_| "must start with a whole number".to_owned())?;
    let millis = number.checked_mul(millis_per_unit).ok_or("is too long")?;
    Ok(Duration::from_millis(millis))
}

/// Milliseconds as [`span`] reads them, in the largest unit that fits exactly.
fn write_span(millis: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fits = |(size, _): &&(u64, &str)| millis != 0 && millis.is_multiple_of(*size);
    let (size, unit) = units.iter().find(fits).unwrap_or(&(1, "ms"));
    format!("{}{unit}", millis / size)
}

pub(crate) fn count(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = plain.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| "must be a whole number".into())
}

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "must be a number of bytes, such as 65536, 64KiB or 1MiB".to_owned();
    let (number, size) = match text.strip_suffix("KiB") {
        Some(number) => (number, 1 << 10),
        None => text.strip_suffix("MiB").map_or((text, 1), |number| (number, 1 << 20)),
    };
    count(number.trim_end()).map_err(|_| wrong())?.checked_mul(size).ok_or_else(wrong)
}

fn within(number: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(format!("must be from {least} to {most}"))
}

/// The form only; the client reads the rest.
fn server(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains([' ', '@', '?', '#']) => Ok(()),
        _ => Err("must be http:// or https:// addresses, separated by commas".into()),
    }
}

/// A path without an end: a `/` is put behind it.
fn prefix(text: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_graphic();
    let ok = text.len() <= 128 && text.chars().all(plain);
    if ok && text.starts_with('/') && !text.ends_with('/') {
        return Ok(());
    }
    Err("must begin with / and not end with it, at most 128 visible ASCII characters".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units_and_bounds() {
        for (text, millis) in
            [("0s", 0), ("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("7d", 604_800_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_millis(millis)), "{text}");
            assert_eq!(span(&write_span(millis)), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "5", "s", "-1s", "0.5s", "5 s", "5sec", "1e3s", "99999999999999999999s"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        assert!(span(&format!("{}d", u64::MAX)).is_err());
        assert!(Kind::Span(1_000, 5_000).check("5s").is_ok());
        assert_eq!(Kind::Span(1_000, 5_000).check("6s"), Err("must be from 1s to 5s".into()));
    }

    #[test]
    fn every_kind_refuses_what_is_not_of_it() {
        let table = [
            (Kind::Choice(&["a", "b"]), "a", "c"),
            (Kind::Count(1, 9), "9", "10"),
            (Kind::Count(1, 9), "1", "+1"),
            (Kind::Bytes(1, 1 << 20), "64 KiB", "2MiB"),
            (Kind::Bytes(1, 1 << 20), "65536", "64KB"),
            (Kind::Address, "127.0.0.1:0", "localhost:7420"),
            (Kind::Namespace, "a-b", "A"),
            (Kind::Path, "/x", ""),
            (Kind::Word, "dlock", ""),
            (Kind::Prefix, "/dlock", "dlock"),
            (Kind::Prefix, "/a/b", "/a/"),
            (Kind::Prefix, "/a", "/"),
            (Kind::Prefix, "/a.b", "/a b"),
            (Kind::Servers, "http://a:1,https://b", "a:1"),
            (Kind::Servers, "http://[::1]:7420", "http://me@a"),
            (Kind::Levels, "dlock=debug", ""),
        ];
        for (kind, good, bad) in table {
            assert!(kind.check(good).is_ok(), "{kind:?} {good}");
            assert!(kind.check(bad).is_err(), "{kind:?} {bad}");
        }
    }
}
