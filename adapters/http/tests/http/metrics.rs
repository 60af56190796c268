//! Metrics: whatever the application's handle writes.

use std::sync::Arc;

use crate::support::{MockService, TestClock, browse, config, get, unasked};

#[tokio::test]
async fn the_handle_is_asked_each_time() {
    let asked = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let mut config = config();
    config.metrics = Some(Arc::new(move || {
        let times = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        format!("# TYPE scrapes counter\nscrapes {times}\n")
    }));
    let router =
        dlock_http::router(Arc::new(MockService::new()), Arc::new(TestClock::default()), config);
    for times in 0..2 {
        let answer = browse(&router, "/metrics").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4");
        assert_eq!(answer.text, format!("# TYPE scrapes counter\nscrapes {times}\n"));
    }
}

#[tokio::test]
async fn without_a_handle_there_are_none() {
    let answer = get(&unasked(), "/metrics").await;
    answer.refuses(404, "not-found", None);
    assert!(answer.body.get("applied").is_none());
}

#[tokio::test]
async fn a_handle_that_panics_is_a_problem() {
    let mut config = config();
    config.metrics = Some(Arc::new(|| panic!("planted")));
    let router =
        dlock_http::router(Arc::new(MockService::new()), Arc::new(TestClock::default()), config);
    get(&router, "/metrics").await.refuses(500, "internal", None);
}
