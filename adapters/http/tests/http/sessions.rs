//! Sessions: what reaches the service, and what it answers.

use dlock_domain::AttemptId;
use dlock_ports::{HeldGrant, Kept};
use serde_json::json;

use crate::support::{
    ATTEMPT, MockService, SECRET, at_ms, key, owner, post, router_over, session, session_id, token,
    ttl, unasked,
};

#[tokio::test]
async fn open() {
    let mut service = MockService::new();
    service
        .expect_open_session()
        .withf(|who, life| *who == owner("me") && *life == ttl(30_000))
        .times(1)
        .returning(|_, _| Ok(session(at_ms(1_000 + 29_400))));
    let body = r#"{"owner":"me","ttl_ms":30000}"#;
    let answer = post(&router_over(service), "/v1/sessions", body).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.headers["content-type"], "application/json");
    let expected =
        json!({"session_id": SECRET, "owner": "me", "ttl_ms": 30_000, "valid_ms": 29_400});
    assert_eq!(answer.body, expected);
}

#[tokio::test]
async fn keep_alive_passes_what_is_held_and_answers_what_is_lost() {
    let mut service = MockService::new();
    service
        .expect_keep_session()
        .withf(|id, held| {
            *id == session_id()
                && held == [(key("default", "a"), token(1)), (key("other", "b"), token(2))]
        })
        .times(1)
        .returning(|_, _| {
            let lost = vec![(key("other", "b"), token(2))];
            Ok(Kept { session: session(at_ms(30_400)), lost })
        });
    let body = json!({"session_id": SECRET, "held": [
        {"name": "a", "fencing_token": 1, "namespace": null},
        {"name": "b", "namespace": "other", "fencing_token": 2},
    ]});
    let answer = post(&router_over(service), "/v1/sessions/keepalive", body.to_string()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        json!({"session_id": SECRET, "ttl_ms": 30_000, "valid_ms": 29_400,
            "lost": [{"name": "b", "namespace": "other", "fencing_token": 2}]})
    );
}

#[tokio::test]
async fn keep_alive_needs_no_list() {
    for held in ["", r#","held":null"#, r#","held":[]"#] {
        let mut service = MockService::new();
        service
            .expect_keep_session()
            .withf(|_, held| held.is_empty())
            .times(1)
            .returning(|_, _| Ok(Kept { session: session(at_ms(0)), lost: vec![] }));
        let body = format!(r#"{{"session_id":"{SECRET}"{held}}}"#);
        let answer = post(&router_over(service), "/v1/sessions/keepalive", body).await;
        assert_eq!(answer.body["lost"], json!([]));
        assert_eq!(answer.body["valid_ms"], 0);
    }
}

#[tokio::test]
async fn keep_alive_names_the_entry_that_is_wrong() {
    let router = unasked();
    let good = r#"{"name":"a","fencing_token":1}"#;
    for (bad, field) in [
        (r#"{"fencing_token":1}"#, "held[1].name"),
        (r#"{"name":"","fencing_token":1}"#, "held[1].name"),
        (r#"{"name":"a"}"#, "held[1].fencing_token"),
        (r#"{"name":"a","fencing_token":0}"#, "held[1].fencing_token"),
        (r#"{"name":"a","fencing_token":"1"}"#, "held[1].fencing_token"),
        (r#"{"name":"a","fencing_token":1,"namespace":"A"}"#, "held[1].namespace"),
        (r#"{"name":"a","fencing_token":1,"bogus":1}"#, "held[1].bogus"),
        (r#"{"name":"a","name":"b","fencing_token":1}"#, "held[1].name"),
        (r#"["a",null,1]"#, "held[1]"),
        ("null", "held[1]"),
        ("7", "held[1]"),
    ] {
        let body = format!(r#"{{"session_id":"{SECRET}","held":[{good},{bad}]}}"#);
        let answer = post(&router, "/v1/sessions/keepalive", body).await;
        answer.refuses(422, "invalid-argument", Some(field));
    }
}

#[tokio::test]
async fn look() {
    let mut service = MockService::new();
    service.expect_look_session().withf(|id| *id == session_id()).times(1).returning(|_| {
        let attempt = AttemptId::parse(ATTEMPT).unwrap();
        let grant = HeldGrant { key: key("default", "a"), token: token(5), attempt };
        Ok((session(at_ms(11_000)), vec![grant]))
    });
    let body = json!({"session_id": SECRET}).to_string();
    let answer = post(&router_over(service), "/v1/sessions/look", body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        json!({"session_id": SECRET, "owner": "me", "ttl_ms": 30_000, "valid_ms": 10_000,
            "grants": [{"name": "a", "namespace": "default", "fencing_token": 5,
                "attempt_id": ATTEMPT}]})
    );
}

#[tokio::test]
async fn close() {
    for closed in [true, false] {
        let mut service = MockService::new();
        service
            .expect_close_session()
            .withf(|id| *id == session_id())
            .times(1)
            .returning(move |_| Ok(closed));
        let body = json!({"session_id": SECRET}).to_string();
        let answer = post(&router_over(service), "/v1/sessions/close", body).await;
        assert_eq!((answer.status.as_u16(), answer.body), (200, json!({"closed": closed})));
    }
}

#[tokio::test]
async fn a_bad_session_id_is_named_and_not_repeated() {
    let router = unasked();
    for path in ["/v1/sessions/keepalive", "/v1/sessions/look", "/v1/sessions/close"] {
        for id in [r#""topsecret""#, r#""""#, "null", "7", "[]"] {
            let answer = post(&router, path, format!(r#"{{"session_id":{id}}}"#)).await;
            answer.refuses(422, "invalid-argument", Some("session_id"));
            assert!(!answer.body.to_string().contains("topsecret"));
        }
        post(&router, path, "{}").await.refuses(422, "invalid-argument", Some("session_id"));
    }
}
