//! Bad company on real sockets: slow, endless, and gone in the middle (C07, C34, C35, trap 41).

use core::time::Duration;

use tokio::io::AsyncWriteExt;

use crate::support::{SECRET, Server, config, soon};

const DRAIN: Duration = Duration::from_secs(30);
const BRIEF: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let server = Server::start(config(), DRAIN).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        client.get("/livez").await;
        assert_eq!(client.answer().await.0, 200);
    }
    client.get("/v1/locks/inspect?name=%FF").await;
    assert_eq!(client.answer().await.0, 400);
    client.post("/v1/sessions/look", &format!(r#"{{"session_id":"{SECRET}"}}"#)).await;
    let (status, problem) = client.answer().await;
    assert_eq!((status, &problem["type"]), (500, &"urn:dlock:problem:internal".into()));
    client.get("/livez").await;
    assert_eq!(client.answer().await.0, 200);
}

#[tokio::test]
async fn c35_a_head_that_does_not_come_ends_the_connection() {
    let mut config = config();
    config.header_read_timeout = BRIEF;
    let server = Server::start(config, DRAIN).await;
    for beginning in ["", "P", "GET /livez HTTP/1.1\r\nHost: local"] {
        let mut client = server.connect().await;
        client.write(beginning.as_bytes()).await;
        client.is_closed().await;
    }
    // Idle between two requests is no different.
    let mut client = server.connect().await;
    client.get("/livez").await;
    assert_eq!(client.answer().await.0, 200);
    client.is_closed().await;
}

#[tokio::test]
async fn c35_a_body_that_does_not_come_is_408() {
    let mut config = config();
    config.body_read_timeout = BRIEF;
    let server = Server::start(config, DRAIN).await;
    let mut client = server.connect().await;
    let head = "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 30\r\n\r\n{";
    client.write(head.as_bytes()).await;
    let (status, problem) = client.answer().await;
    assert_eq!((status, &problem["type"]), (408, &"urn:dlock:problem:request-timeout".into()));
    assert_eq!(problem["retryable"], true);
    assert_eq!(problem["applied"], "no");
    client.is_closed().await;
}

#[tokio::test]
async fn a_client_that_takes_no_answer_ends_its_connection() {
    let mut config = config();
    config.write_timeout = BRIEF;
    let server = Server::start(config, DRAIN).await;
    let mut client = server.connect().await;
    let questions = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    // Until the answers fill what lies between, and then until the server has had enough.
    while soon(client.0.write_all(questions.as_bytes())).await.is_ok() {}
    server.renews().await;
}

#[tokio::test]
async fn c34_an_endless_body_is_413() {
    let server = Server::start(config(), DRAIN).await;
    let mut client = server.connect().await;
    let head = "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.write(head.as_bytes()).await;
    let chunk = format!("1000\r\n{}\r\n", " ".repeat(0x1000));
    for _ in 0..16 {
        client.write(chunk.as_bytes()).await;
    }
    // More than is allowed, and no end. The server may be gone before it has read all of it.
    let _ = soon(client.0.write_all(chunk.as_bytes())).await;
    assert_eq!(client.answer().await.0, 413);
    // It does not go on reading: at some time nobody takes what is written.
    while soon(client.0.write_all(chunk.as_bytes())).await.is_ok() {}
    server.renews().await;
}

#[tokio::test]
async fn c34_an_announced_giant_is_413_before_it_is_sent() {
    let server = Server::start(config(), DRAIN).await;
    let mut client = server.connect().await;
    let head = "POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n";
    client.write(head.as_bytes()).await;
    assert_eq!(client.answer().await.0, 413);
}

#[tokio::test]
async fn what_is_not_http_ends_the_connection() {
    let server = Server::start(config(), DRAIN).await;
    for nonsense in ["nonsense\r\n\r\n", "\x16\x03\x01\x02\0", "GET /livez HTTP/9.9\r\n\r\n"] {
        let mut client = server.connect().await;
        client.write(nonsense.as_bytes()).await;
        assert_eq!(client.answer().await.0, 400, "{nonsense:?}");
        client.is_closed().await;
    }
    let mut client = server.connect().await;
    let endless = format!("GET /livez HTTP/1.1\r\nX: {}", "x".repeat(32 * 1_024));
    client.write(endless.as_bytes()).await;
    assert_eq!(client.answer().await.0, 431);
    server.renews().await;
}

#[tokio::test]
async fn a_head_has_limits_and_then_the_connection_ends() {
    let server = Server::start(config(), DRAIN).await;
    let head = |padding: String| format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{padding}\r\n");
    let mut client = server.connect().await;
    client.write(head(format!("X: {}\r\n", "x".repeat(15 * 1_024))).as_bytes()).await;
    assert_eq!(client.answer().await.0, 200);
    // The first is the Host.
    client.write(head("X: x\r\n".repeat(99)).as_bytes()).await;
    assert_eq!(client.answer().await.0, 200);
    for too_much in [
        head(format!("X: {}\r\n", "x".repeat(16 * 1_024))),
        head("X: x\r\n".repeat(100)),
        format!("GET /livez?{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(16 * 1_024)),
    ] {
        let mut client = server.connect().await;
        client.write(too_much.as_bytes()).await;
        assert_eq!(client.answer().await, (431, serde_json::Value::Null));
        client.is_closed().await;
    }
}

#[tokio::test]
async fn c07_hanging_up_drops_the_acquire() {
    let mut server = Server::start(config(), DRAIN).await;
    let mut client = server.connect().await;
    client.waits().await;
    server.sees_start().await;
    drop(client);
    server.sees_drop().await;
    server.renews().await;
}
