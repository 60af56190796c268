//! The trace that a request belongs to: W3C trace context (C4).

use axum::http::HeaderMap;

/// The header that carries it.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// The length of version 00: `vv-<32 digits>-<16 digits>-ff`.
const LENGTH: usize = 55;

/// The trace's id, 32 lower-case hexadecimal digits, if the header is there once and well formed;
/// else `None`: a trace that cannot be told is no reason to refuse a request.
///
/// A version beyond 00 may be longer, after another hyphen, as the standard asks of its readers.
pub(crate) fn id(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let (Some(value), None) = (given.next(), given.next()) else { return None };
    let text = value.to_str().ok()?;
    let (head, rest) = text.split_at_checked(LENGTH)?;
    let mut fields = head.split('-');
    let version = fields.next().filter(|field| is_hex(field, 2) && *field != "ff")?;
    let trace = fields.next().filter(|field| is_hex(field, 32) && !is_zero(field))?;
    fields.next().filter(|field| is_hex(field, 16) && !is_zero(field))?;
    fields.next().filter(|field| is_hex(field, 2))?;
    let ends = rest.is_empty() || (version != "00" && rest.starts_with('-'));
    (ends && fields.next().is_none()).then_some(trace)
}

fn is_hex(field: &str, digits: usize) -> bool {
    field.len() == digits && field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_zero(field: &str) -> bool {
    field.bytes().all(|byte| byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn of(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, value.parse().unwrap());
        }
        id(&headers).map(str::to_owned)
    }

    #[test]
    fn what_the_standard_allows_is_read() {
        for rest in ["00f067aa0ba902b7-00", "00f067aa0ba902b7-01", "00f067aa0ba902b7-ff"] {
            assert_eq!(of(&[&format!("00-{TRACE}-{rest}")]).as_deref(), Some(TRACE), "{rest}");
        }
        for later in ["", "-", "-what-comes-later"] {
            let value = format!("01-{TRACE}-00f067aa0ba902b7-01{later}");
            assert_eq!(of(&[&value]).as_deref(), Some(TRACE), "{value}");
        }
    }

    #[test]
    fn everything_else_is_no_trace() {
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&good, &good]), None);
        for bad in [
            String::new(),
            TRACE.to_owned(),
            good.to_uppercase(),
            format!("{good} "),
            format!("{good}-01"),
            format!("01{}x", &good[2..]),
            format!("ff{}", &good[2..]),
            format!("0x{}", &good[2..]),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{TRACE}-00f067aa0ba902b7-0"),
            format!("00-{TRACE}-00f067aa0ba902b-001"),
            format!("00_{TRACE}_00f067aa0ba902b7_01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.replace('4', "\n").replace('\n', "g")),
        ] {
            assert_eq!(of(&[&bad]), None, "{bad}");
        }
    }
}
