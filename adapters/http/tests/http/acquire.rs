//! Acquire: for whom, how long, and what the answer counts from.

use core::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use dlock_domain::AttemptId;
use dlock_ports::{Acquired, SessionRef};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::support::{
    ATTEMPT, MockService, SECRET, TestClock, at_ms, config, handle, info, key, owner, post,
    router_over, session_id, ttl, unasked,
};

const PATH: &str = "/v1/locks/acquire";

#[tokio::test]
async fn for_an_open_session() {
    let mut service = MockService::new();
    service
        .expect_acquire()
        .withf(|request| {
            request.key == key("jobs", "nightly")
                && request.session == SessionRef::Id(session_id())
                && request.attempt == Some(AttemptId::parse(ATTEMPT).unwrap())
                && request.max_wait == Duration::from_secs(3_600)
        })
        .times(1)
        .returning(|request| Ok(Acquired::Granted(handle(request.key, at_ms(30_400)))));
    let body = json!({"name": "nightly", "namespace": "jobs", "session_id": SECRET,
        "max_wait_ms": 3_600_000, "attempt_id": ATTEMPT});
    let answer = post(&router_over(service), PATH, body.to_string()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        json!({"name": "nightly", "namespace": "jobs", "owner": "me", "session_id": SECRET,
            "fencing_token": 7, "ttl_ms": 30_000, "valid_ms": 29_400})
    );
}

#[tokio::test]
async fn for_a_session_of_its_own_without_waiting() {
    for rest in ["", r#","max_wait_ms":0"#, r#","max_wait_ms":null,"attempt_id":null"#] {
        let mut service = MockService::new();
        service
            .expect_acquire()
            .withf(|request| {
                let own = SessionRef::Private { owner: owner("me"), ttl: ttl(1_000) };
                request.key == key("default", "k")
                    && request.session == own
                    && request.attempt.is_none()
                    && request.max_wait.is_zero()
            })
            .times(1)
            .returning(|request| Ok(Acquired::Granted(handle(request.key, at_ms(1_950)))));
        let body = format!(r#"{{"name":"k","owner":"me","ttl_ms":1000{rest}}}"#);
        let answer = post(&router_over(service), PATH, body).await;
        assert_eq!((answer.status.as_u16(), &answer.body["valid_ms"]), (200, &json!(950)));
    }
}

#[tokio::test]
async fn both_or_neither_or_half_is_refused() {
    let router = unasked();
    for (members, field) in [
        ("", "session_id"),
        (r#","session_id":null"#, "session_id"),
        (r#","owner":"me""#, "ttl_ms"),
        (r#","owner":"me","ttl_ms":null"#, "ttl_ms"),
        (r#","ttl_ms":1000"#, "owner"),
        (&format!(r#","session_id":"{SECRET}","owner":"me","ttl_ms":1000"#), "owner"),
        (&format!(r#","session_id":"{SECRET}","owner":"me""#), "owner"),
        (&format!(r#","session_id":"{SECRET}","ttl_ms":1000"#), "ttl_ms"),
    ] {
        let answer = post(&router, PATH, format!(r#"{{"name":"k"{members}}}"#)).await;
        answer.refuses(422, "invalid-argument", Some(field));
        assert_eq!(answer.body["applied"], "no");
    }
}

#[tokio::test]
async fn not_granted_tells_who_holds_it_without_the_session() {
    for seen in [true, false] {
        let mut service = MockService::new();
        service.expect_acquire().returning(move |request| {
            Ok(Acquired::NotGranted { holder: seen.then(|| info(request.key)) })
        });
        let body = json!({"name": "k", "session_id": SECRET}).to_string();
        let answer = post(&router_over(service), PATH, body).await;
        answer.refuses(409, "not-granted", None);
        assert_eq!(answer.body["applied"], "no");
        assert_eq!(answer.body["retryable"], false);
        let holder = json!({"name": "k", "namespace": "default", "owner": "holder",
            "fencing_token": 9, "held_for_ms": 2_000, "expires_in_ms": 28_500, "waiter_count": 3});
        let members = answer.body.as_object().unwrap();
        assert_eq!(members.get("holder"), Some(if seen { &holder } else { &Value::Null }));
        assert!(!answer.body.to_string().contains(SECRET));
    }
}

#[tokio::test]
async fn inv03_valid_ms_counts_from_the_arrival_of_the_request() {
    let clock = TestClock::default();
    let mut service = MockService::new();
    let waiting = clock.clone();
    service.expect_acquire().returning(move |request| {
        // The wait takes 10 s; the lease is set at its end.
        waiting.advance(Duration::from_secs(10));
        let deadline = dlock_ports::Clock::now(&waiting).after(Duration::from_micros(29_400_900));
        Ok(Acquired::Granted(handle(request.key, deadline)))
    });
    let router = dlock_http::router(Arc::new(service), Arc::new(clock.clone()), config());

    // The body takes 5 s to arrive.
    let text = json!({"name": "k", "session_id": SECRET, "max_wait_ms": 60_000}).to_string();
    let mut pieces = vec![Bytes::from(text)];
    let body = Slow(move || {
        clock.advance(Duration::from_secs(5));
        pieces.pop()
    });
    let answer = post(&router, PATH, Body::new(body)).await;
    // Twice 5 s: the piece, and the end after it.
    assert_eq!(answer.body["valid_ms"], 29_400 + 10_000 + 2 * 5_000, "{answer:?}");
}

/// A body that is made while it is read.
struct Slow<F>(F);

impl<F: FnMut() -> Option<Bytes> + Unpin> hyper::body::Body for Slow<F> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready((self.0)().map(|piece| Ok(Frame::data(piece))))
    }
}
