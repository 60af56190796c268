//! What a request's head asks for besides: `HEAD` for `GET`, and `Accept`.

use axum::{
    Router,
    http::{HeaderValue, Method, header},
};
use dlock_ports::Page;

use crate::support::{MockService, browse, info, load, post, request, router_over};

const PATHS: [&str; 12] = [
    "/",
    "/style.css",
    "/docs",
    "/docs/",
    "/docs/swagger-ui.css",
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/v1/locks",
    "/v1/locks/inspect?name=k",
    "/v1/locks/inspect?name=%FF",
];

fn router() -> Router {
    let mut service = MockService::new();
    service.expect_list().returning(|_| Ok(Page { locks: vec![], next: None }));
    service.expect_inspect().returning(|lock| Ok(Some(info(lock.clone()))));
    router_over(service)
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let router = router();
    for path in PATHS {
        let got = browse(&router, path).await;
        let head = load(&router, request(Method::HEAD, path, "")).await;
        assert_eq!(head.status, got.status, "{path}");
        assert_eq!(head.text, "", "{path}");
        for name in [
            header::CONTENT_TYPE,
            header::CACHE_CONTROL,
            header::CONTENT_SECURITY_POLICY,
            header::LOCATION,
        ] {
            assert_eq!(head.headers.get(&name), got.headers.get(&name), "{path} {name}");
        }
        assert!(head.headers.contains_key("x-request-id"));
    }
    let head = load(&router, request(Method::HEAD, "/v1/locks/acquire", "")).await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (405, ""));
}

#[tokio::test]
async fn accept_has_no_influence() {
    let router = router();
    for path in PATHS {
        let plain = browse(&router, path).await;
        for accept in ["text/html", "application/xml", "*/*;q=0", "", "nonsense", "\u{ff}"] {
            let mut picky = request(Method::GET, path, "");
            let value = HeaderValue::from_bytes(accept.as_bytes()).unwrap();
            picky.headers_mut().insert(header::ACCEPT, value);
            let answer = load(&router, picky).await;
            assert_eq!(answer.status, plain.status, "{path} {accept}");
            assert_eq!(answer.text, plain.text, "{path} {accept}");
            let media = |headers: &axum::http::HeaderMap| headers.get("content-type").cloned();
            assert_eq!(media(&answer.headers), media(&plain.headers), "{path} {accept}");
        }
    }
    // Failures as well.
    let mut picky = request(Method::POST, "/v1/sessions", "[]");
    picky.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("text/html"));
    let answer = load(&router, picky).await;
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert_eq!(post(&router, "/v1/sessions", "[]").await.status, answer.status);
}
