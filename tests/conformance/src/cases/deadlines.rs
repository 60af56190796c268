//! Deadlines: a call whose budget is spent before it begins does nothing, and says so.

use core::time::Duration;

use dlock_domain::{Deadline, ErrorKind, Namespace, TokenFloor};
use dlock_ports::{Consistency, InsertRequest, Intent, ListRequest};

use crate::{
    Harness,
    kit::{
        a, assert_refused, attempt, b, key, long, ns, of, owner, private, revocation, session_id,
    },
};

const REFUSED: ErrorKind = ErrorKind::Contention;

/// Every method refuses a deadline that has passed, or is this very moment; nothing was done.
pub async fn a_deadline_in_the_past_does_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let named = attempt();
    let handle = a.take_as(&key("held"), &of(&session), named).await;
    let (locks, sessions) = (&a.backend.locks, &a.backend.sessions);
    for late in [Duration::ZERO, Duration::from_secs(5)] {
        let by = Deadline::at(a.now().before(late));
        for holder in [of(&session), private("worker")] {
            for intent in [Intent::Acquire, Intent::Recover] {
                let request = InsertRequest {
                    key: key("free"),
                    holder: holder.clone(),
                    attempt: attempt(),
                    intent,
                };
                assert_refused(locks.try_insert(request, by).await, REFUSED);
            }
        }
        assert_refused(locks.extend(&handle.key, handle.token, by).await, REFUSED);
        assert_refused(locks.delete_if_owner(&handle.key, handle.token, by).await, REFUSED);
        for consistency in [Consistency::Follower, Consistency::Linearizable] {
            assert_refused(locks.read(&handle.key, consistency, by).await, REFUSED);
        }
        assert_refused(locks.revoke(&handle.key, revocation(None), by).await, REFUSED);
        assert_refused(locks.reap_expired(10, by).await, REFUSED);
        let id = session_id();
        assert_refused(sessions.open(owner("late"), long(), Some(id), by).await, REFUSED);
        assert_refused(sessions.open(owner("late"), long(), None, by).await, REFUSED);
        assert_refused(sessions.keep_alive(&session.id, &[], by).await.map(drop), REFUSED);
        assert_refused(sessions.look(&session.id, by).await, REFUSED);
        assert_refused(sessions.forget(&key("held"), &of(&session), named, by).await, REFUSED);
        assert_refused(sessions.close(&session.id, by).await, REFUSED);
        if let Some(directory) = &a.backend.directory {
            let request = ListRequest {
                namespace: Namespace::default(),
                prefix: "".into(),
                after: None,
                limit: 9,
            };
            assert_refused(directory.list(request, by).await.map(drop), REFUSED);
        }
        if let Some(floors) = &a.backend.floors {
            let raised = floors.raise(&ns("default"), TokenFloor::NONE, by).await;
            assert_refused(raised, REFUSED);
        }
        assert_eq!(b.look(&id).await, None, "not opened");
    }
    assert_eq!(b.read(&key("free")).await, None, "not granted");
    assert_eq!(b.read(&key("held")).await.map(|info| info.token), Some(handle.token));
    assert_eq!(b.take_as(&key("held"), &of(&session), named).await.token, handle.token);
}

/// A deadline that lies ahead but not far is enough for a store that is at leisure.
pub async fn a_deadline_ahead_is_honoured<H: Harness>(h: &H) {
    let a = a(h);
    let by = Deadline::at(a.now().after(Duration::from_secs(2)));
    let session = a.backend.sessions.open(owner("worker"), long(), None, by).await;
    let session = session.expect("opens in time");
    assert!(a.close(&session.id).await);
}
