//! What browsers are told about the pages: nothing from elsewhere, and in nobody's frame.

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};

/// For the page at `/`: its style sheet and nothing else.
pub(crate) const PLAIN: &str = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'none'";

/// For the API's documentation, which is a program: its own scripts, the pictures that its style
/// sheet carries inline, and calls to this server. No inline scripts or styles, no `eval`.
pub(crate) const DOCS: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
    form-action 'none'";

/// An answer for browsers, under this policy.
pub(crate) fn answer(media: HeaderValue, policy: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
