//! Transport failures are never loss (INV-07).

use std::time::Duration;

use dlock_conformance::kit::{
    assert_failed, assert_refused, attempt, key, millis, private, private_for,
};
use dlock_domain::{Applied, Deadline, ErrorKind};
use dlock_ports::Consistency;

use crate::{Place, proxy};

/// Nobody listens there: nothing can have been done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_a_refused_connection_is_contention() {
    let mut place = Place::new().await;
    let mut config = place.config();
    config.endpoints = vec!["http://127.0.0.1:1".into()];
    let store = place.connect(config).await;
    let a = dlock_conformance::kit::Caller::on(
        store.backend(),
        std::sync::Arc::new(dlock_conformance::SystemClock::new()),
        Duration::from_secs(2),
    );
    let locks = &a.backend.locks;
    let token = dlock_conformance::kit::token(7);
    let kind = ErrorKind::Contention;
    assert_eq!(locks.extend(&key("k"), token, a.by()).await.unwrap_err().kind(), kind);
    assert_eq!(locks.delete_if_owner(&key("k"), token, a.by()).await.unwrap_err().kind(), kind);
    let read = locks.read(&key("k"), Consistency::Linearizable, a.by()).await;
    assert_refused(read, kind);
    assert_refused(a.insert(&key("k"), &private("worker"), attempt()).await, kind);
}

/// The cluster is cut off without a word: every call ends by its deadline, a write with an unknown
/// outcome, nothing lost, nothing held by somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_a_cut_connection_is_contention_and_ends_by_the_deadline() {
    let mut place = Place::new().await;
    let proxy = proxy();
    let a = place.caller_through(&proxy).await;
    let handle = a.take(&key("k"), &private_for("worker", millis(60_000))).await;
    proxy.cut();
    let by = || Deadline::at(a.now().after(Duration::from_millis(300)));
    let (locks, sessions) = (&a.backend.locks, &a.backend.sessions);
    let kind = ErrorKind::Contention;
    assert_eq!(locks.extend(&handle.key, handle.token, by()).await.unwrap_err().kind(), kind);
    let deleted = locks.delete_if_owner(&handle.key, handle.token, by()).await;
    assert_failed(deleted, kind, Applied::Unknown);
    let closed = sessions.close(&handle.session, by()).await;
    assert_failed(closed, kind, Applied::Unknown);
    let kept = sessions.keep_alive(&handle.session, &[], by()).await.map(|kept| kept.is_some());
    assert_eq!(kept.unwrap_err().kind(), kind);
    let looked = sessions.look(&handle.session, by()).await.map(|looked| looked.is_some());
    assert_refused(looked, kind);
}
