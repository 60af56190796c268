//! The name of a request in logs.

use axum::http::{HeaderMap, HeaderValue};
use dlock_ports::Entropy;

/// The header that carries it, both ways.
pub(crate) const X_REQUEST_ID: &str = "x-request-id";

/// The client's own id if it is one, of 1 to 128 visible ASCII characters, else a new one: what is
/// logged and echoed must not forge lines (C33, trap 44).
pub(crate) fn choose(headers: &HeaderMap, entropy: &dyn Entropy) -> (String, HeaderValue) {
    let mut given = headers.get_all(X_REQUEST_ID).iter();
    if let (Some(value), None) = (given.next(), given.next())
        && let Ok(text) = value.to_str()
        && (1..=128).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return (text.to_owned(), value.clone());
    }
    let text = format!("{:032x}", entropy.bits());
    // Hexadecimal digits are always a valid value.
    let value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("0"));
    (text, value)
}
