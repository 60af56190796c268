//! What happens around every handler: host, request id, headers, panics.

use std::sync::Arc;

use axum::http::{HeaderValue, Method, Version, header};
use dlock_http::HostPolicy;

use crate::support::{
    Answer, MockService, SECRET, TestClock, config, get, post, request, router_over, send, unasked,
};

async fn with_host(policy: HostPolicy, version: Version, hosts: &[&[u8]], uri: &str) -> Answer {
    let mut config = config();
    config.host_policy = policy;
    let router =
        dlock_http::router(Arc::new(MockService::new()), Arc::new(TestClock::default()), config);
    let mut request = request(Method::GET, uri, "");
    *request.version_mut() = version;
    request.headers_mut().remove(header::HOST);
    for host in hosts {
        request.headers_mut().append(header::HOST, HeaderValue::from_bytes(host).unwrap());
    }
    send(&router, request).await
}

#[tokio::test]
async fn a_server_on_loopback_answers_for_loopback_only() {
    let loopback = |host: &'static [u8]| async move {
        with_host(HostPolicy::Loopback, Version::HTTP_11, &[host], "/livez").await
    };
    for good in [&b"localhost"[..], b"localhost:7420", b"127.0.0.1:1", b"127.8.8.8", b"[::1]:7420"]
    {
        assert_eq!(loopback(good).await.status, 200);
    }
    for bad in [
        &b"evil.example"[..],
        b"evil.example:7420",
        b"localhost.evil.example",
        b"",
        b"192.168.0.1:7420",
        b"\xff",
        b"localhost, evil.example",
    ] {
        loopback(bad).await.refuses(421, "misdirected", None);
    }
}

#[tokio::test]
async fn the_authority_of_the_request_line_counts_as_well() {
    let with =
        |uri: &'static str| with_host(HostPolicy::Loopback, Version::HTTP_11, &[b"localhost"], uri);
    assert_eq!(with("http://127.0.0.1:7420/livez").await.status, 200);
    with("http://evil.example/livez").await.refuses(421, "misdirected", None);
}

#[tokio::test]
async fn exactly_one_host() {
    for policy in [HostPolicy::Loopback, HostPolicy::Any] {
        let none = with_host(policy, Version::HTTP_11, &[], "/livez").await;
        none.refuses(400, "malformed-host", None);
        let two =
            with_host(policy, Version::HTTP_11, &[b"localhost", b"localhost"], "/livez").await;
        two.refuses(400, "malformed-host", None);
        assert_eq!(with_host(policy, Version::HTTP_10, &[], "/livez").await.status, 200);
    }
    let any = with_host(HostPolicy::Any, Version::HTTP_11, &[b"lock.example"], "/livez").await;
    assert_eq!(any.status, 200);
}

#[tokio::test]
async fn the_host_is_judged_before_anything_is_done() {
    let mut evil = request(Method::POST, "/v1/sessions", r#"{"owner":"me","ttl_ms":1000}"#);
    evil.headers_mut().insert(header::HOST, HeaderValue::from_static("evil.example"));
    let answer = send(&unasked(), evil).await;
    answer.refuses(421, "misdirected", None);
    assert_eq!(answer.body["applied"], "no");
}

#[tokio::test]
async fn request_ids_are_kept_or_replaced() {
    let router = unasked();
    let with = async |ids: &[&[u8]]| {
        let mut request = request(Method::GET, "/livez", "");
        for id in ids {
            let value = HeaderValue::from_bytes(id).unwrap();
            request.headers_mut().append("x-request-id", value);
        }
        let answer = send(&router, request).await;
        answer.headers["x-request-id"].to_str().unwrap().to_owned()
    };
    let longest = "x".repeat(128);
    for good in ["1", "a-b_c:d/e", longest.as_str()] {
        assert_eq!(with(&[good.as_bytes()]).await, good);
    }
    let too_long = "x".repeat(129);
    let bad: [&[&[u8]]; 7] =
        [&[], &[b""], &[b"a b"], &[b"a\tb"], &[b"\xe9"], &[too_long.as_bytes()], &[b"a", b"b"]];
    let mut seen = Vec::new();
    for ids in bad {
        let id = with(ids).await;
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        assert!(!seen.contains(&id), "{id} came twice");
        seen.push(id);
    }
}

#[tokio::test]
async fn every_answer_has_the_headers() {
    let router = unasked();
    for answer in [
        get(&router, "/livez").await,
        get(&router, "/nowhere").await,
        post(&router, "/livez", "").await,
        post(&router, "/v1/sessions", "nonsense").await,
        send(&router, {
            let mut request = request(Method::GET, "/livez", "");
            request.headers_mut().remove(header::HOST);
            request
        })
        .await,
    ] {
        assert_eq!(answer.headers["cache-control"], "no-store", "{answer:?}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{answer:?}");
        assert!(answer.headers.contains_key("x-request-id"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_panic_is_a_problem_and_the_next_call_is_fine() {
    let mut service = MockService::new();
    service.expect_close_session().times(1).returning(|_| panic!("planted"));
    service.expect_inspect().times(1).returning(|_| panic!("planted"));
    service.expect_close_session().times(1).returning(|_| Ok(true));
    let router = router_over(service);
    let body = format!(r#"{{"session_id":"{SECRET}"}}"#);

    let answer = post(&router, "/v1/sessions/close", body.clone()).await;
    answer.refuses(500, "internal", None);
    assert_eq!(answer.body["applied"], "unknown");
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert!(!answer.body.to_string().contains("planted"));

    let answer = get(&router, "/v1/locks/inspect?name=k").await;
    answer.refuses(500, "internal", None);
    assert!(answer.body.get("applied").is_none());

    assert_eq!(post(&router, "/v1/sessions/close", body).await.status, 200);
}
