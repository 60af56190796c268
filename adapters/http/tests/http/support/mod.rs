//! What the tests share.

mod raw;
mod service;
mod world;

pub(crate) use raw::{Server, soon};
pub(crate) use service::{MockService, Stubborn};
pub(crate) use world::{Asked, Chance, Ready, TestClock, config};

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Method, Request, StatusCode},
};
use dlock_domain::{
    FencingToken, LockHandle, LockInfo, LockKey, LockName, Moment, Namespace, OwnerId, Session,
    SessionId, Ttl, WallTime,
};
use dlock_ports::LockService;
use serde_json::Value;
use tower::ServiceExt;

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    /// The kind of a problem, once it is seen to be one in every respect.
    pub(crate) fn problem(&self) -> &str {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status.as_u16(), "{self:?}");
        for text in ["title", "detail"] {
            assert!(self.body[text].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        }
        assert!(self.body["retryable"].is_boolean(), "{self:?}");
        self.body["type"].as_str().unwrap().strip_prefix("urn:dlock:problem:").unwrap()
    }

    /// Asserts a problem of this status, kind and field.
    #[track_caller]
    pub(crate) fn refuses(&self, status: u16, kind: &str, field: Option<&str>) {
        assert_eq!((self.status.as_u16(), self.problem()), (status, kind), "{self:?}");
        assert_eq!(self.body.get("field").and_then(Value::as_str), field, "{self:?}");
    }
}

pub(crate) fn router_over(service: impl LockService + 'static) -> Router {
    dlock_http::router(Arc::new(service), Arc::new(TestClock::default()), config())
}

/// A router over a service that must not be asked.
pub(crate) fn unasked() -> Router {
    router_over(MockService::new())
}

pub(crate) async fn send(router: &Router, request: Request<Body>) -> Answer {
    let answer = load(router, request).await;
    let body = match answer.text.as_str() {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap(),
    };
    Answer { status: answer.status, headers: answer.headers, body }
}

/// An answer that is no JSON.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

pub(crate) async fn load(router: &Router, request: Request<Body>) -> Loaded {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.unwrap();
    // Pictures are not looked at.
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Loaded { status: parts.status, headers: parts.headers, text }
}

/// Loads as a browser does.
pub(crate) async fn browse(router: &Router, path: &str) -> Loaded {
    load(router, request(Method::GET, path, Body::empty())).await
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost:7420")
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap()
}

pub(crate) async fn post(router: &Router, path: &str, body: impl Into<Body>) -> Answer {
    send(router, request(Method::POST, path, body)).await
}

pub(crate) async fn get(router: &Router, path: &str) -> Answer {
    send(router, request(Method::GET, path, Body::empty())).await
}

/// The secret of every test, in its text form.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
/// An attempt's id.
pub(crate) const ATTEMPT: &str = "000000000000000000000000000000aa";

pub(crate) fn session_id() -> SessionId {
    SessionId::parse(SECRET).unwrap()
}
pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::from_user(number).unwrap()
}
pub(crate) fn ttl(millis: u64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}
pub(crate) fn owner(text: &str) -> OwnerId {
    OwnerId::new(text).unwrap()
}
pub(crate) fn key(namespace: &str, name: &str) -> LockKey {
    LockKey::new(Namespace::new(namespace).unwrap(), LockName::new(name).unwrap())
}
/// A moment of the test clock, in milliseconds.
pub(crate) fn at_ms(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

pub(crate) fn session(deadline: Moment) -> Session {
    Session { id: session_id(), owner: owner("me"), ttl: ttl(30_000), client_deadline: deadline }
}

pub(crate) fn handle(key: LockKey, deadline: Moment) -> LockHandle {
    LockHandle {
        key,
        owner: owner("me"),
        session: session_id(),
        token: token(7),
        ttl: ttl(30_000),
        client_deadline: deadline,
        server_expiry: WallTime::from_unix_millis(1),
    }
}

/// Granted 2 s before the test clock's wall time, ending 28.5 s after it.
pub(crate) fn info(key: LockKey) -> LockInfo {
    LockInfo {
        key,
        owner: owner("holder"),
        session: Some(session_id()),
        token: token(9),
        acquired_at: WallTime::from_unix_millis(world::WALL - 2_000),
        server_expiry: WallTime::from_unix_millis(world::WALL + 28_500),
        waiter_count: 3,
    }
}
