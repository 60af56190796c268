//! Answers that are not a dlock server's: unknown, never lost, and the address is named (INV-07).

use dlock_domain::{Applied, ErrorKind};
use dlock_ports::LockService;
use serde_json::{Value, json};

use crate::support::{Asked, assert_failed, grant, key, named, once, session, soon, token, wish};

fn http(status: &str, media: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A renewal is where a loss would be believed.
async fn renewal_is_answered(bytes: &str) {
    let (mut server, world) = once().await;
    let asking =
        world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
    server.sees("POST /v1/locks/renew").await.raw(bytes.as_bytes()).await;
    let error = assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    assert!(error.detail().contains(server.url.as_str()), "{bytes}: {error}");
    assert!(!format!("{error:?}").contains(&session().expose()), "{error:?}");
}

#[tokio::test]
async fn other_services_and_proxies_are_not_believed() {
    let lost = r#"{"type":"urn:dlock:problem:lock-lost","title":"T","status":410,"detail":"d","retryable":false}"#;
    let elsewhere = lost.replace("urn:dlock:problem:", "https://example.com/");
    for answer in [
        "hello\r\n".to_owned(),
        "HTTP/1.1 999\r\n\r\n".to_owned(),
        "SSH-2.0-OpenSSH\r\n".to_owned(),
        http("410 Gone", "text/html", "<h1>Gone</h1>"),
        http("410 Gone", "text/html", lost),
        http("410 Gone", "application/json", lost),
        http("410 Gone", "application/problem+json", &elsewhere),
        http("410 Gone", "application/problem+json", "{}"),
        http("410 Gone", "application/problem+json", &lost.replace("410", "409")),
        http("410 Gone", "application/problem+json", &lost[..lost.len() - 1]),
        http("410 Gone", "application/problem+json", &format!("[{lost}]")),
        http("200 OK", "application/problem+json", lost),
        http("404 Not Found", "text/plain", "404 page not found"),
        http("502 Bad Gateway", "text/html", "<h1>Bad gateway</h1>"),
        http("204 No Content", "application/json", ""),
        http("301 Moved", "text/html", ""),
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 400\r\n\r\n{".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
            .to_owned(),
    ] {
        renewal_is_answered(&answer).await;
    }
}

#[tokio::test]
async fn grants_of_the_wrong_shape_are_no_grants() {
    let good = grant(session());
    let change = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body.to_string()
    };
    let missing = |field: &str| {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(field);
        body.to_string()
    };
    let number = |field: &str, digits: &str| {
        good.to_string()
            .replace(&format!("\"{field}\":{}", good[field]), &format!("\"{field}\":{digits}"))
    };
    let mut bodies = vec![
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        format!("{good}{good}"),
        format!("{good} trailing"),
        "[".repeat(100_000),
        change("name", json!("another")),
        change("namespace", json!("another")),
        change("owner", json!("")),
        change("owner", json!("a\u{1b}b")),
        change("session_id", json!("00000000000000000000000000000001")),
        change("session_id", json!("secret")),
        change("fencing_token", json!(8)),
        change("fencing_token", json!("7")),
        change("ttl_ms", json!(0)),
        change("ttl_ms", json!(u64::MAX)),
        good.to_string().replace("\"valid_ms\"", "\"ttl_ms\""),
    ];
    for field in ["name", "namespace", "owner", "session_id", "fencing_token", "ttl_ms", "valid_ms"]
    {
        bodies.push(missing(field));
        bodies.push(change(field, Value::Null));
        bodies.push(change(field, json!({})));
    }
    for digits in ["-1", "0.5", "1e308", "18446744073709551616", "9007199254740992", "0"] {
        bodies.push(number("fencing_token", digits));
    }
    for digits in ["-1", "0.5", "1e308", "18446744073709551616"] {
        bodies.push(number("valid_ms", digits));
        bodies.push(number("ttl_ms", digits));
    }
    for body in bodies {
        assert_ne!(body, good.to_string());
        renewal_is_answered(&http("200 OK", "application/json", &body)).await;
    }
}

/// What a later server adds is no harm.
#[tokio::test]
async fn what_is_added_is_ignored() {
    let (mut server, world) = once().await;
    let asking = world.acquire(named(wish(), 5));
    let mut body = grant(session());
    body["colour"] = json!({ "deep": [1, 2, 3] });
    server.sees("POST /v1/locks/acquire").await.reply(200, body).await;
    assert!(soon(asking).await.unwrap().is_ok());
}

/// An answer without end is read to a mebibyte and no further, whatever it says it is.
#[tokio::test]
async fn endless_answers_are_cut() {
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    let problem = "HTTP/1.1 410 Gone\r\ncontent-type: application/problem+json\r\n";
    for head in [json, problem] {
        for (how, again) in [
            ("connection: close\r\n\r\n", &b"                                "[..]),
            ("transfer-encoding: chunked\r\n\r\n", &b"10\r\n                \r\n"[..]),
            ("content-length: 99999999999\r\n\r\n", &b"[[[[[[[[[[[[[[[[[[[[[[[["[..]),
        ] {
            let (mut server, world) = once().await;
            let asking = world
                .start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
            let asked: Asked = server.sees("POST /v1/locks/renew").await;
            let writing = {
                let (head, again) = (format!("{head}{how}"), again.repeat(512));
                tokio::spawn(async move { asked.endless(&head, &again).await })
            };
            let answer = soon(asking).await.unwrap();
            let error = assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
            assert!(error.detail().contains("without end"), "{error}");
            // The client has hung up.
            soon(writing).await.unwrap();
        }
    }
}

/// Endless headers too.
#[tokio::test]
async fn endless_headers_are_cut() {
    let (mut server, world) = once().await;
    let asking =
        world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
    let asked = server.sees("POST /v1/locks/renew").await;
    let again = format!("x-more: {}\r\n", "y".repeat(4_000));
    let writing =
        tokio::spawn(async move { asked.endless("HTTP/1.1 200 OK\r\n", again.as_bytes()).await });
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    soon(writing).await.unwrap();
}
