//! Renew: the token and the session go together.

use dlock_domain::{ErrorKind, LockError};
use serde_json::json;

use crate::support::{
    MockService, SECRET, at_ms, handle, key, post, router_over, session_id, token, unasked,
};

const PATH: &str = "/v1/locks/renew";

#[tokio::test]
async fn answers_as_acquire_does() {
    let mut service = MockService::new();
    service
        .expect_renew()
        .withf(|lock, number, session| {
            *lock == key("default", "k") && *number == token(7) && *session == session_id()
        })
        .times(1)
        .returning(|lock, _, _| Ok(handle(lock.clone(), at_ms(30_400))));
    let body = json!({"name": "k", "fencing_token": 7, "session_id": SECRET}).to_string();
    let answer = post(&router_over(service), PATH, body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        json!({"name": "k", "namespace": "default", "owner": "me", "session_id": SECRET,
            "fencing_token": 7, "ttl_ms": 30_000, "valid_ms": 29_400})
    );
}

#[tokio::test]
async fn lost_is_410_and_unknown_is_503() {
    for (kind, status) in [(ErrorKind::LockLost, 410), (ErrorKind::Contention, 503)] {
        let mut service = MockService::new();
        service.expect_renew().returning(move |_, _, _| Err(LockError::new(kind, "x")));
        let body = json!({"name": "k", "fencing_token": 7, "session_id": SECRET}).to_string();
        assert_eq!(post(&router_over(service), PATH, body).await.status, status);
    }
}

#[tokio::test]
async fn a_token_alone_is_no_authority() {
    let answer = post(&unasked(), PATH, r#"{"name":"k","fencing_token":7}"#).await;
    answer.refuses(422, "invalid-argument", Some("session_id"));
}
