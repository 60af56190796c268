//! What is logged, and what is not.

use std::{
    io,
    sync::{Arc, Mutex},
};

use axum::http::{HeaderValue, Method};
use dlock_domain::{Invariant, LockError};
use dlock_ports::Acquired;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{MockService, SECRET, at_ms, handle, request, router_over, send};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(flavor = "current_thread")]
async fn spans_have_method_route_status_and_id_and_no_secret() {
    let log = Log::default();
    // With a single dispatcher in the process, a span that another test's thread meets first is
    // judged by that thread's default, which is none, and stays silent for this test too.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let mut service = MockService::new();
    service
        .expect_acquire()
        .returning(|request| Ok(Acquired::Granted(handle(request.key, at_ms(0)))));
    service.expect_renew().returning(|_, _, _| {
        let cause = io::Error::other("the cause");
        Err(LockError::incident(Invariant::TokensRise, "going back").caused_by(cause))
    });
    let router = router_over(service);

    let mut traced = request(
        Method::POST,
        "/v1/locks/acquire?token=in-the-query",
        json!({"name": "the-name", "session_id": SECRET}).to_string(),
    );
    traced.headers_mut().insert("x-request-id", HeaderValue::from_static("trace-me"));
    assert_eq!(send(&router, traced).await.status, 200);
    // A client that puts its secret where it does not belong.
    for path in [format!("/v1/sessions/{SECRET}"), format!("/livez?session_id={SECRET}")] {
        send(&router, request(Method::GET, &path, "")).await;
    }
    for wrong in [json!({"session_id": [SECRET]}), json!({ SECRET: 1 })] {
        send(&router, request(Method::POST, "/v1/sessions/close", wrong.to_string())).await;
    }
    let renew = json!({"name": "k", "fencing_token": 7, "session_id": SECRET}).to_string();
    assert_eq!(send(&router, request(Method::POST, "/v1/locks/renew", renew)).await.status, 500);

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for expected in [
        "/v1/locks/acquire",
        "method=\"POST\"",
        "status=200",
        "request_id=\"trace-me\"",
        "path=\"none\"",
        "INV-04",
        "the cause",
    ] {
        assert!(text.contains(expected), "{expected} is not in: {text}");
    }
    for secret in [SECRET, "the-name", "in-the-query"] {
        assert!(!text.contains(secret), "{secret} is in: {text}");
    }
}
