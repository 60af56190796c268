//! Raising a namespace's floor.

use dlock_domain::{ErrorKind, LockError, TokenFloor};
use dlock_ports::Raised;
use serde_json::json;

use crate::support::{MockService, post, router_over, unasked};

const PATH: &str = "/v1/floor";

fn floor(number: u64) -> TokenFloor {
    TokenFloor::new(number).unwrap()
}

#[tokio::test]
async fn the_answer_says_how_high_and_how_many() {
    for (namespace, meant) in [(json!("ns"), "ns"), (json!(null), "default")] {
        let mut service = MockService::new();
        service
            .expect_raise_floor()
            .withf(move |namespace, at_least| {
                namespace.as_str() == meant && *at_least == floor(1_000)
            })
            .times(1)
            .returning(|_, _| Ok(Raised { floor: floor(1_024), grants_ended: 3 }));
        let body = json!({"namespace": namespace, "at_least": 1_000}).to_string();
        let answer = post(&router_over(service), PATH, body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.body,
            json!({"namespace": meant, "token_floor": 1_024, "grants_ended": 3})
        );
    }
}

#[tokio::test]
async fn c36_floors_have_one_form() {
    let router = unasked();
    for bad in ["-1", "9007199254740992", "18446744073709551615", "1.0", "1e3", r#""7""#, "null"] {
        let answer = post(&router, PATH, format!(r#"{{"at_least":{bad}}}"#)).await;
        answer.refuses(422, "invalid-argument", Some("at_least"));
    }
    post(&router, PATH, "{}").await.refuses(422, "invalid-argument", Some("at_least"));
    let named = r#"{"at_least":1,"namespace":"Upper"}"#;
    post(&router, PATH, named).await.refuses(422, "invalid-argument", Some("namespace"));
    let unknown = r#"{"at_least":1,"name":"k"}"#;
    post(&router, PATH, unknown).await.refuses(422, "invalid-argument", Some("name"));
}

#[tokio::test]
async fn the_service_may_refuse() {
    for (kind, status) in [
        (ErrorKind::InvalidArgument { field: "at_least" }, 422),
        (ErrorKind::Unsupported, 501),
        (ErrorKind::Contention, 503),
    ] {
        let mut service = MockService::new();
        service
            .expect_raise_floor()
            .returning(move |_, _| Err(LockError::new(kind, "x").maybe_applied()));
        let answer = post(&router_over(service), PATH, r#"{"at_least":0}"#).await;
        let field = (status == 422).then_some("at_least");
        answer.refuses(status, kind.name(), field);
        assert_eq!(answer.body["applied"], "unknown");
    }
}
