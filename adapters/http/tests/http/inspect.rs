//! Inspect: what others see.

use axum::http::Method;
use dlock_domain::WallTime;
use serde_json::{Value, json};

use crate::support::{MockService, SECRET, get, info, key, request, router_over, send};

#[tokio::test]
async fn a_held_lock_is_shown_without_its_session() {
    let mut service = MockService::new();
    service
        .expect_inspect()
        .withf(|lock| *lock == key("ns", "k"))
        .returning(|lock| Ok(Some(info(lock.clone()))));
    let router = router_over(service);
    let answer = get(&router, "/v1/locks/inspect?name=k&namespace=ns").await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        json!({"name": "k", "namespace": "ns", "owner": "holder", "fencing_token": 9,
            "held_for_ms": 2_000, "expires_in_ms": 28_500, "waiter_count": 3})
    );
    assert!(!answer.body.to_string().contains(SECRET));

    let path = "/v1/locks/inspect?name=k&namespace=ns";
    let answer = send(&router, request(Method::HEAD, path, "")).await;
    assert_eq!((answer.status.as_u16(), answer.body), (200, Value::Null));
}

#[tokio::test]
async fn durations_stay_at_zero_when_the_wall_clock_has_jumped() {
    let mut service = MockService::new();
    service.expect_inspect().returning(|lock| {
        let mut info = info(lock.clone());
        info.acquired_at = WallTime::from_unix_millis(u64::MAX);
        info.server_expiry = WallTime::from_unix_millis(0);
        Ok(Some(info))
    });
    let answer = get(&router_over(service), "/v1/locks/inspect?name=k").await;
    assert_eq!(answer.body["held_for_ms"], 0);
    assert_eq!(answer.body["expires_in_ms"], 0);
}

#[tokio::test]
async fn a_free_lock_is_404_of_another_kind_than_a_missing_route() {
    let mut service = MockService::new();
    service.expect_inspect().returning(|_| Ok(None));
    let answer = get(&router_over(service), "/v1/locks/inspect?name=k").await;
    answer.refuses(404, "not-held", None);
    assert!(answer.body.get("applied").is_none());
}
