//! Every kind of error against its status and document (C2, INV-07).

use axum::http::Method;
use dlock_domain::{ErrorKind, Invariant, LockError};
use serde_json::Value;

use crate::support::{MockService, SECRET, get, post, request, router_over, send, unasked};

const KINDS: [(ErrorKind, u16, &str, bool); 11] = [
    (ErrorKind::Contention, 503, "contention", true),
    (ErrorKind::NotLeader, 503, "not-leader", true),
    (ErrorKind::Draining, 503, "draining", true),
    (ErrorKind::LockLost, 410, "lock-lost", false),
    (ErrorKind::SessionExpired, 410, "session-expired", false),
    (ErrorKind::InvalidArgument { field: "attempt_id" }, 422, "invalid-argument", false),
    (ErrorKind::Limit { limit: "lock.max_waiters" }, 429, "limit", false),
    (ErrorKind::Denied, 403, "denied", false),
    (ErrorKind::Unsupported, 501, "unsupported", false),
    (ErrorKind::InvariantViolated(Invariant::TokensRise), 500, "invariant-violated", false),
    (ErrorKind::InvariantViolated(Invariant::OneGrantPerKey), 500, "invariant-violated", false),
];

#[tokio::test]
async fn inv07_each_kind_has_its_status_and_says_whether_it_was_applied() {
    for (kind, status, name, retryable) in KINDS {
        for unknown in [false, true] {
            let mut service = MockService::new();
            service.expect_renew().returning(move |_, _, _| {
                let error = LockError::new(kind, "the detail");
                Err(if unknown { error.maybe_applied() } else { error })
            });
            let body = format!(r#"{{"name":"k","fencing_token":7,"session_id":"{SECRET}"}}"#);
            let answer = post(&router_over(service), "/v1/locks/renew", body).await;

            let field = (name == "invalid-argument").then_some("attempt_id");
            answer.refuses(status, name, field);
            assert_eq!(answer.body["detail"], "the detail");
            assert_eq!(answer.body["retryable"], retryable, "{kind:?}");
            assert_eq!(answer.body["applied"], if unknown { "unknown" } else { "no" }, "{kind:?}");
            let retry_after = answer.headers.contains_key("retry-after");
            assert_eq!(retry_after, [429, 503].contains(&status), "{kind:?}");
            let text = |member: &str| answer.body.get(member).and_then(Value::as_str);
            assert_eq!(text("limit"), (name == "limit").then_some("lock.max_waiters"));
            let invariant = match kind {
                ErrorKind::InvariantViolated(which) => Some(which.id()),
                _ => None,
            };
            assert_eq!(text("invariant"), invariant);
            assert!(answer.body.get("holder").is_none());
        }
    }
}

#[tokio::test]
async fn a_failed_read_says_nothing_of_having_been_applied() {
    for (kind, status, name, _) in KINDS {
        let mut service = MockService::new();
        service.expect_inspect().returning(move |_| Err(LockError::new(kind, "x").maybe_applied()));
        service.expect_look_session().returning(move |_| Err(LockError::new(kind, "x")));
        let router = router_over(service);
        let body = format!(r#"{{"session_id":"{SECRET}"}}"#);
        for answer in [
            get(&router, "/v1/locks/inspect?name=k").await,
            post(&router, "/v1/sessions/look", body).await,
        ] {
            assert_eq!((answer.status.as_u16(), answer.problem()), (status, name));
            assert!(answer.body.get("applied").is_none(), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn unknown_routes_are_problems() {
    let router = unasked();
    for path in ["/nowhere", "/v1/locks/acquire/", "/V1/sessions", "/v1/%73essions", "/../v1"] {
        let answer = post(&router, path, "{}").await;
        answer.refuses(404, "not-found", None);
        assert_eq!(answer.body["applied"], "no");
        assert!(get(&router, path).await.body.get("applied").is_none());
    }
}

#[tokio::test]
async fn wrong_methods_are_problems_that_say_which_are_allowed() {
    let router = unasked();
    for (method, path, allowed) in [
        (Method::GET, "/v1/sessions", "POST"),
        (Method::DELETE, "/v1/locks/acquire", "POST"),
        (Method::OPTIONS, "/v1/locks/release", "POST"),
        (Method::POST, "/v1/locks/inspect", "GET,HEAD"),
        (Method::PUT, "/livez", "GET,HEAD"),
    ] {
        let answer = send(&router, request(method, path, "{}")).await;
        answer.refuses(405, "method-not-allowed", None);
        assert_eq!(answer.headers["allow"], allowed, "{path}");
    }
}
