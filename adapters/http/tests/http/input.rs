//! Bodies: what is refused, how, and that it is named (C30 to C34, C36, trap 44).

use axum::{
    body::Body,
    http::{Method, header},
};
use dlock_ports::Acquired;
use serde_json::json;

use crate::support::{
    MockService, SECRET, at_ms, handle, key, post, request, router_over, send, unasked,
};

const OPEN: &str = "/v1/sessions";
const ACQUIRE: &str = "/v1/locks/acquire";

#[tokio::test]
async fn c30_names_reach_the_service_as_they_are() {
    for name in ["a", "a/", "//", ".", "%2F", "a+b", "a b", "?x=1", "#", "\u{e9}", "e\u{301}"] {
        let mut service = MockService::new();
        service
            .expect_acquire()
            .withf(move |request| request.key == key("default", name))
            .times(1)
            .returning(|request| Ok(Acquired::Granted(handle(request.key, at_ms(0)))));
        let body = json!({"name": name, "session_id": SECRET}).to_string();
        let answer = post(&router_over(service), ACQUIRE, body).await;
        assert_eq!(answer.body["name"], name);
    }
}

#[tokio::test]
async fn c31_bad_names_are_422_and_bad_bytes_400() {
    let router = unasked();
    let long = "x".repeat(513);
    let bad = ["", "\0", "a\nb", "\u{7f}", "\u{85}", &long];
    for name in bad {
        let body = json!({"name": name, "session_id": SECRET}).to_string();
        post(&router, ACQUIRE, body).await.refuses(422, "invalid-argument", Some("name"));
    }
    for byte in [0xFF_u8, 0xFE, 0xC3] {
        let mut body = br#"{"name":"a"#.to_vec();
        body.push(byte);
        body.extend_from_slice(br#"","owner":"me","ttl_ms":1000}"#);
        post(&router, ACQUIRE, body).await.refuses(400, "malformed-body", None);
    }
    // Half a character, escaped: JSON by its grammar, and no text.
    let body = r#"{"name":"\ud800","owner":"me","ttl_ms":1000}"#;
    post(&router, ACQUIRE, body).await.refuses(422, "invalid-argument", Some("name"));
    // Raw control characters are not JSON.
    post(&router, ACQUIRE, "{\"name\":\"a\nb\"}").await.refuses(400, "malformed-body", None);
}

/// What is no lifetime and no wait, whatever the range.
const NO_NUMBERS: [&str; 17] = [
    "-1",
    "-0",
    "0.5",
    "1000.0",
    "1e3",
    "1e308",
    "1e400",
    "-1e400",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    r#""5s""#,
    r#""1000""#,
    "true",
    "[]",
    "[1000]",
    "{}",
];

#[tokio::test]
async fn c32_lifetimes() {
    let router = unasked();
    for ttl in NO_NUMBERS.into_iter().chain(["null", "0", "999", "86400001"]) {
        let body = format!(r#"{{"owner":"me","ttl_ms":{ttl}}}"#);
        post(&router, OPEN, body).await.refuses(422, "invalid-argument", Some("ttl_ms"));
        let body = format!(r#"{{"name":"k","owner":"me","ttl_ms":{ttl}}}"#);
        post(&router, ACQUIRE, body).await.refuses(422, "invalid-argument", Some("ttl_ms"));
    }
    let body = r#"{"owner":"me"}"#;
    post(&router, OPEN, body).await.refuses(422, "invalid-argument", Some("ttl_ms"));
    for not_json in ["NaN", "Infinity", "0x10", "+1", "01000", "1_000", ".5", "1.", ""] {
        let body = format!(r#"{{"owner":"me","ttl_ms":{not_json}}}"#);
        post(&router, OPEN, body).await.refuses(400, "malformed-body", None);
    }
}

#[tokio::test]
async fn c32_waits() {
    let router = unasked();
    for wait in NO_NUMBERS.into_iter().chain(["3600001"]) {
        let body = format!(r#"{{"name":"k","session_id":"{SECRET}","max_wait_ms":{wait}}}"#);
        post(&router, ACQUIRE, body).await.refuses(422, "invalid-argument", Some("max_wait_ms"));
    }
}

#[tokio::test]
async fn c33_owners_that_would_forge_a_line() {
    let router = unasked();
    let long = "x".repeat(10 * 1_024);
    for owner in ["", "a\r\nx-evil: 1", "a\nb", "\u{1b}[31mred", "a\u{202e}b", &long] {
        let body = json!({"owner": owner, "ttl_ms": 1_000}).to_string();
        let answer = post(&router, OPEN, body).await;
        answer.refuses(422, "invalid-argument", Some("owner"));
        assert!(!answer.headers.contains_key("x-evil"));
    }
    post(&router, OPEN, r#"{"owner":7,"ttl_ms":1000}"#).await.refuses(
        422,
        "invalid-argument",
        Some("owner"),
    );
}

#[tokio::test]
async fn c34_shapes() {
    let router = unasked();
    for (body, status, field) in [
        // Not JSON, or not only.
        ("", 400, None),
        ("  ", 400, None),
        ("{", 400, None),
        ("{'owner':'me'}", 400, None),
        (r#"{"owner":"me","ttl_ms":1000,}"#, 400, None),
        (r#"{"owner":"me","ttl_ms":1000} x"#, 400, None),
        (r#"{"owner":"me","ttl_ms":1000}{}"#, 400, None),
        (r#"{"bogus":1} x"#, 400, None),
        ("\u{feff}{}", 400, None),
        // JSON of another shape.
        ("[]", 422, None),
        (r#"["me",1000]"#, 422, None),
        ("null", 422, None),
        ("7", 422, None),
        (r#""text""#, 422, None),
        ("{}", 422, Some("owner")),
        (r#"{"owner":null,"ttl_ms":1000}"#, 422, Some("owner")),
        (r#"{"owner":"me","ttl_ms":1000,"bogus":1}"#, 422, Some("bogus")),
        (r#"{"owner":"me","ttl_ms":1000,"Owner":"me"}"#, 422, Some("Owner")),
        (r#"{"owner":"me","owner":"you","ttl_ms":1000}"#, 422, Some("owner")),
        (r#"{"owner":null,"owner":"you","ttl_ms":1000}"#, 422, Some("owner")),
        (r#"{"owner":"me","ttl_ms":1000,"ttl_ms":1000}"#, 422, Some("ttl_ms")),
        (r#"{"owner":"me","\u006fwner":"you","ttl_ms":1000}"#, 422, Some("owner")),
    ] {
        let answer = post(&router, OPEN, body).await;
        let kind = if status == 400 { "malformed-body" } else { "invalid-argument" };
        answer.refuses(status, kind, field);
        assert_eq!(answer.body["applied"], "no");
    }
}

#[tokio::test]
async fn c34_depth_and_size() {
    let router = unasked();
    let nested = |open: &str, close: &str, n| format!("{}{}", open.repeat(n), close.repeat(n));
    for body in [
        nested("[", "]", 30_000),
        nested(r#"{"a":"#, "}", 10_000).replace(":}", ":1}"),
        format!(r#"{{"owner":{}}}"#, nested("[", "]", 30_000)),
        format!(r#"{{"bogus":{}}}"#, nested("[", "]", 1_000)),
        "[".repeat(60_000),
    ] {
        post(&router, OPEN, body).await.refuses(400, "malformed-body", None);
    }
    let answer = post(&router, OPEN, nested("[", "]", 100_000)).await;
    answer.refuses(413, "body-too-large", None);
    assert_eq!(answer.body["limit"], "http.max_body");
}

#[tokio::test]
async fn c34_the_limit_is_exact() {
    let mut service = MockService::new();
    service.expect_close_session().times(1).returning(|_| Ok(true));
    let router = router_over(service);
    let body = format!(r#"{{"session_id":"{SECRET}"}}"#);
    let padded = |size| format!("{body}{}", " ".repeat(size - body.len()));
    assert_eq!(post(&router, "/v1/sessions/close", padded(64 * 1_024)).await.status, 200);
    assert_eq!(post(&router, "/v1/sessions/close", padded(64 * 1_024 + 1)).await.status, 413);
}

#[tokio::test]
async fn c34_types_and_encodings() {
    let router = unasked();
    let body = r#"{"owner":"me","ttl_ms":1000}"#;
    for media in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=x"]
    {
        let mut request = request(Method::POST, OPEN, body);
        request.headers_mut().insert(header::CONTENT_TYPE, media.parse().unwrap());
        send(&router, request).await.refuses(415, "unsupported-media-type", None);
    }
    let mut without = request(Method::POST, OPEN, body);
    without.headers_mut().remove(header::CONTENT_TYPE);
    send(&router, without).await.refuses(415, "unsupported-media-type", None);

    // The beginning of a gzip file.
    let gzip = [0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 3];
    post(&router, OPEN, Body::from(gzip.to_vec())).await.refuses(400, "malformed-body", None);
    for encoding in ["gzip", "deflate", "br", "gzip, identity"] {
        let mut request = request(Method::POST, OPEN, Body::from(gzip.to_vec()));
        request.headers_mut().insert(header::CONTENT_ENCODING, encoding.parse().unwrap());
        send(&router, request).await.refuses(415, "unsupported-media-type", None);
    }
}

#[tokio::test]
async fn c36_tokens_have_one_form() {
    let router = unasked();
    for path in ["/v1/locks/renew", "/v1/locks/release"] {
        for token in
            NO_NUMBERS.into_iter().chain(["0", "9007199254740992", r#""7""#, r#""007""#, "7.0"])
        {
            let body = format!(r#"{{"name":"k","session_id":"{SECRET}","fencing_token":{token}}}"#);
            let answer = post(&router, path, body).await;
            // 2^63 and 2^64−1 are integers, and no tokens.
            answer.refuses(422, "invalid-argument", Some("fencing_token"));
        }
        let body = format!(r#"{{"name":"k","session_id":"{SECRET}","fencing_token":007}}"#);
        post(&router, path, body).await.refuses(400, "malformed-body", None);
    }
}

#[tokio::test]
async fn c36_the_greatest_token_is_exact() {
    let mut service = MockService::new();
    service
        .expect_renew()
        .withf(|_, token, _| token.get() == 9_007_199_254_740_991)
        .times(1)
        .returning(|lock, token, _| {
            let mut handle = handle(lock.clone(), at_ms(0));
            handle.token = token;
            Ok(handle)
        });
    let body =
        format!(r#"{{"name":"k","session_id":"{SECRET}","fencing_token":9007199254740991}}"#);
    let answer = post(&router_over(service), "/v1/locks/renew", body).await;
    assert_eq!(answer.body["fencing_token"].to_string(), "9007199254740991");
}
