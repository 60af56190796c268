//! Release, in both forms.

use dlock_domain::{AttemptId, ErrorKind, LockError};
use dlock_ports::{Current, Released, SessionRef};
use serde_json::json;

use crate::support::{
    ATTEMPT, MockService, SECRET, key, post, router_over, session_id, token, unasked,
};

const PATH: &str = "/v1/locks/release";

#[tokio::test]
async fn by_token() {
    for (current, text) in [
        (Current::None, "none"),
        (Current::Same, "same"),
        (Current::Other, "other"),
        (Current::Unknown, "unknown"),
    ] {
        for released in [true, false] {
            let mut service = MockService::new();
            service
                .expect_release()
                .withf(|lock, number, session| {
                    *lock == key("ns", "k") && *number == token(7) && *session == session_id()
                })
                .times(1)
                .returning(move |_, _, _| Ok(Released { released, current }));
            let body = json!({"name": "k", "namespace": "ns", "fencing_token": 7,
                "session_id": SECRET, "attempt_id": null});
            let answer = post(&router_over(service), PATH, body.to_string()).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.body, json!({"released": released, "current": text}));
        }
    }
}

#[tokio::test]
async fn by_attempt() {
    let mut service = MockService::new();
    service
        .expect_forget()
        .withf(|lock, session, attempt| {
            *lock == key("default", "k")
                && *session == SessionRef::Id(session_id())
                && *attempt == AttemptId::parse(ATTEMPT).unwrap()
        })
        .times(1)
        .returning(|_, _, _| Ok(Released { released: true, current: Current::None }));
    let body = json!({"name": "k", "session_id": SECRET, "attempt_id": ATTEMPT}).to_string();
    let answer = post(&router_over(service), PATH, body).await;
    assert_eq!(answer.body, json!({"released": true, "current": "none"}));
}

#[tokio::test]
async fn one_of_the_two_and_always_the_session() {
    let router = unasked();
    let id = format!(r#","session_id":"{SECRET}""#);
    for (members, field) in [
        (id.clone(), "fencing_token"),
        (format!(r#"{id},"fencing_token":null,"attempt_id":null"#), "fencing_token"),
        (format!(r#"{id},"fencing_token":7,"attempt_id":"{ATTEMPT}""#), "attempt_id"),
        (format!(r#"{id},"attempt_id":"7""#), "attempt_id"),
        (format!(r#"{id},"attempt_id":7"#), "attempt_id"),
        (r#","fencing_token":7"#.to_owned(), "session_id"),
        (format!(r#","attempt_id":"{ATTEMPT}""#), "session_id"),
    ] {
        let answer = post(&router, PATH, format!(r#"{{"name":"k"{members}}}"#)).await;
        answer.refuses(422, "invalid-argument", Some(field));
    }
}

#[tokio::test]
async fn somebody_elses_token_is_denied() {
    let mut service = MockService::new();
    service
        .expect_release()
        .returning(|_, _, _| Err(LockError::new(ErrorKind::Denied, "another session's")));
    let body = json!({"name": "k", "fencing_token": 7, "session_id": SECRET}).to_string();
    post(&router_over(service), PATH, body).await.refuses(403, "denied", None);
}
