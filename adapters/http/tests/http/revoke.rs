//! Revoke: three outcomes, and who and why.

use dlock_domain::{LockOutcome, TokenFloor};
use serde_json::{Value, json};

use crate::support::{MockService, key, post, router_over, token, unasked};

const PATH: &str = "/v1/locks/revoke";

fn floor(number: u64) -> TokenFloor {
    TokenFloor::new(number).unwrap()
}

#[tokio::test]
async fn a_live_grant_is_ended() {
    let mut service = MockService::new();
    service
        .expect_revoke()
        .withf(|lock, request| {
            *lock == key("ns", "k")
                && request.actor.as_str() == "ops"
                && request.reason.as_str() == "the host is gone"
                && request.expected == Some(token(7))
        })
        .times(1)
        .returning(|_, _| Ok(LockOutcome::Revoked { previous: token(7), floor: floor(8) }));
    let body = json!({"name": "k", "namespace": "ns", "actor": "ops",
        "reason": "the host is gone", "expected_token": 7});
    let answer = post(&router_over(service), PATH, body.to_string()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, json!({"revoked": true, "previous_token": 7, "new_token_floor": 8}));
}

#[tokio::test]
async fn a_free_lock_gets_its_floor_all_the_same() {
    for rest in ["", r#","expected_token":null,"namespace":null"#] {
        let mut service = MockService::new();
        service
            .expect_revoke()
            .withf(|lock, request| *lock == key("default", "k") && request.expected.is_none())
            .times(1)
            .returning(|_, _| Ok(LockOutcome::Free { floor: floor(0) }));
        let body = format!(r#"{{"name":"k","actor":"ops","reason":"why not"{rest}}}"#);
        let answer = post(&router_over(service), PATH, body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.body,
            json!({"revoked": false, "previous_token": null, "new_token_floor": 0})
        );
    }
}

#[tokio::test]
async fn a_mismatch_changes_nothing_and_shows_the_token() {
    for (current, shown) in [(Some(token(9)), json!(9)), (None, Value::Null)] {
        let mut service = MockService::new();
        service.expect_revoke().returning(move |_, _| Ok(LockOutcome::Mismatch { current }));
        let body = json!({"name": "k", "actor": "ops", "reason": "r", "expected_token": 7});
        let answer = post(&router_over(service), PATH, body.to_string()).await;
        answer.refuses(409, "token-mismatch", None);
        assert_eq!(answer.body.as_object().unwrap().get("current_token"), Some(&shown));
        assert_eq!(answer.body["applied"], "no");
        assert_eq!(answer.body["retryable"], false);
    }
}

#[tokio::test]
async fn c33_c36_what_is_wrong_is_named() {
    let router = unasked();
    let long = "x".repeat(1_025);
    let whole = |field: &str, value: Value| {
        let mut body = json!({"name": "k", "actor": "ops", "reason": "r"});
        body[field] = value;
        body.to_string()
    };
    for (field, value) in [
        ("name", Value::Null),
        ("name", json!("")),
        ("namespace", json!("Upper")),
        ("actor", Value::Null),
        ("actor", json!("a\r\nb")),
        ("actor", json!("a\u{202e}b")),
        ("actor", json!(7)),
        ("reason", Value::Null),
        ("reason", json!("")),
        ("reason", json!("\u{1b}[2J")),
        ("reason", json!(long)),
        ("expected_token", json!(0)),
        ("expected_token", json!(9_007_199_254_740_992_u64)),
        ("expected_token", json!("7")),
        ("expected_token", json!(7.5)),
        ("expected_token", json!(-7)),
        ("session_id", json!("x")),
        ("fencing_token", json!(7)),
    ] {
        let answer = post(&router, PATH, whole(field, value)).await;
        answer.refuses(422, "invalid-argument", Some(field));
        assert_eq!(answer.body["applied"], "no");
    }
}
