//! livez and readyz.

use core::time::Duration;
use std::sync::{Arc, atomic::Ordering::SeqCst};

use axum::Router;
use dlock_domain::{ErrorKind, Invariant, LockError};
use dlock_http::HttpConfig;
use serde_json::json;

use crate::support::{Asked, Chance, MockService, Ready, TestClock, get};

fn router(ready: Ready, change: impl FnOnce(&mut HttpConfig)) -> Router {
    let mut config = HttpConfig::new(Arc::new(ready), Arc::new(Chance::default()));
    change(&mut config);
    dlock_http::router(Arc::new(MockService::new()), Arc::new(TestClock::default()), config)
}

#[tokio::test]
async fn alive_whatever_the_store_does() {
    let answer = get(&router(Ready::Hangs, |_| {}), "/livez").await;
    assert_eq!((answer.status.as_u16(), answer.body), (200, json!({"live": true})));
}

#[tokio::test]
async fn ready_when_the_store_is() {
    let answer = get(&router(Ready::Yes, |_| {}), "/readyz").await;
    assert_eq!((answer.status.as_u16(), answer.body), (200, json!({"ready": true})));
}

#[tokio::test]
async fn any_failure_of_the_store_is_503() {
    for kind in [
        ErrorKind::Contention,
        ErrorKind::NotLeader,
        ErrorKind::Denied,
        ErrorKind::InvariantViolated(Invariant::TokensRise),
    ] {
        let answer = get(&router(Ready::No(LockError::new(kind, "x")), |_| {}), "/readyz").await;
        answer.refuses(503, kind.name(), None);
        assert!(answer.body.get("applied").is_none());
        assert_eq!(answer.headers["retry-after"], "1");
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_503() {
    let router = router(Ready::Hangs, |config| config.ready_timeout = Duration::from_millis(1));
    get(&router, "/readyz").await.refuses(503, "contention", None);
}

#[tokio::test]
async fn draining_is_503_and_the_store_is_left_alone() {
    let asked = Asked::default();
    let router = router(Ready::Noting(asked.clone()), |config| config.draining.cancel());
    get(&router, "/readyz").await.refuses(503, "draining", None);
    assert!(!asked.load(SeqCst));
    assert_eq!(get(&router, "/livez").await.status, 200);
}
