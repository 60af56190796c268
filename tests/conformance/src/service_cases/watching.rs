//! Sessions while they wait: a dead one is found dead, and is never granted anything.

use core::time::Duration;
use std::sync::Arc;

use dlock_domain::ErrorKind;
use dlock_ports::SessionRef;
use tokio::task::JoinSet;

use crate::{
    ServiceHarness,
    kit::{assert_refused, drive, key, long},
    service_kit::{PATIENT, alone, desk, desk_b, got, promptly},
};

/// How long a dead session may go on waiting: its lifetime, the third of it between two looks, and
/// the store's slack.
fn found_dead_within<H: ServiceHarness>(h: &H) -> Duration {
    let ttl = h.short_ttl().as_duration();
    // A store may round the lifetime up.
    ttl * 2 + ttl / 3 + h.expiry_slack() + Duration::from_secs(1)
}

/// C01: B waits, nobody keeps its session alive, A releases later. B gets an error, never a grant;
/// C, who waits behind it, gets the lock at once.
pub async fn c01_a_dead_waiter_is_passed_over<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let a = desk.take(&key("k"), &alone("a")).await;
    let b = SessionRef::Id(desk.open("b", h.short_ttl()).await);
    let waiting_b = desk.wait(&key("k"), &b, PATIENT).await;
    let waiting_c = desk.wait(&key("k"), &alone("c"), PATIENT).await;
    let answer = drive(h, found_dead_within(h), waiting_b).await.expect("it is found dead");
    assert_refused(answer.expect("no panic"), ErrorKind::SessionExpired);
    assert!(!waiting_c.is_finished());
    assert!(desk.release(&a).await.released);
    let c = got(promptly("C", waiting_c).await.expect("no panic"));
    assert_eq!((c.owner.as_str(), c.token > a.token), ("c", true));
}

/// C02: a waiter whose session died fails while A still holds.
pub async fn c02_a_dead_waiter_fails_while_the_lock_is_held<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk(h).await, desk_b(h).await);
    let a = other.take(&key("k"), &alone("a")).await;
    let b = SessionRef::Id(desk.open("b", h.short_ttl()).await);
    let waiting = desk.wait(&key("k"), &b, PATIENT).await;
    let answer = drive(h, found_dead_within(h), waiting).await.expect("it is found dead");
    assert_refused(answer.expect("no panic"), ErrorKind::SessionExpired);
    assert!(other.renew(&a).await.is_ok(), "A was not disturbed");
    desk.at_rest().await;
}

/// The same behind others in the line, and for a session that was closed elsewhere.
pub async fn a_closed_session_stops_waiting<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk(h).await, desk_b(h).await);
    let a = other.take(&key("k"), &alone("a")).await;
    let head = desk.wait(&key("k"), &alone("head"), PATIENT).await;
    let id = desk.open("b", h.short_ttl()).await;
    let waiting = desk.wait(&key("k"), &SessionRef::Id(id), PATIENT).await;
    assert!(other.front.close_session(&id).await.expect("close answers"));
    let answer = drive(h, found_dead_within(h), waiting).await.expect("it is found dead");
    assert_refused(answer.expect("no panic"), ErrorKind::SessionExpired);
    assert!(!head.is_finished());
    assert!(other.release(&a).await.released);
    let answer = drive(h, Duration::from_secs(30), head).await.expect("it wakes");
    assert_eq!(got(answer.expect("no panic")).owner.as_str(), "head");
}

/// A session that its client keeps alive waits for as long as it likes.
pub async fn a_kept_session_goes_on_waiting<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let a = desk.take(&key("k"), &alone("a")).await;
    let id = desk.open("b", h.short_ttl()).await;
    let mut waiting = desk.wait(&key("k"), &SessionRef::Id(id), PATIENT).await;
    for _ in 0..9 {
        assert!(drive(h, h.short_ttl().as_duration() / 3, &mut waiting).await.is_none());
        assert_eq!(desk.front.keep_session(&id, &[]).await.expect("live").lost, []);
    }
    assert!(desk.release(&a).await.released);
    let handle = got(promptly("B", waiting).await.expect("no panic"));
    assert_eq!(handle.session, id);
    // INV-03: what was kept while waiting counts, not what was asked at first.
    assert!(handle.client_deadline > desk.clock.now());
}

/// The session's methods: kept, looked at, closed; and once it is gone, each says so.
pub async fn sessions_say_when_they_are_gone<H: ServiceHarness>(h: &H) {
    let desk = desk(h).await;
    let id = desk.open("worker", long()).await;
    let handle = desk.take(&key("k"), &SessionRef::Id(id)).await;
    let listed = [(handle.key.clone(), handle.token)];
    assert_eq!(desk.front.keep_session(&id, &listed).await.expect("live").lost, []);
    let (session, grants) = desk.front.look_session(&id).await.expect("live");
    assert_eq!((session.id, session.owner.as_str()), (id, "worker"));
    assert_eq!((grants.len(), grants[0].token), (1, handle.token));
    assert!(desk.front.close_session(&id).await.expect("close answers"));
    assert!(!desk.front.close_session(&id).await.expect("close answers"));
    let gone = ErrorKind::SessionExpired;
    assert_refused(desk.front.keep_session(&id, &listed).await.map(drop), gone);
    assert_refused(desk.front.look_session(&id).await, gone);
    assert_refused(desk.renew(&handle).await, ErrorKind::LockLost);
    assert_eq!(desk.inspect(&key("k")).await, None);
}

/// Closing a session hands its locks to who waits for them.
pub async fn a_close_hands_on_every_lock<H: ServiceHarness>(h: &H) {
    let (desk, other) = (desk(h).await, desk_b(h).await);
    let id = desk.open("holder", long()).await;
    let mut waiting = Vec::new();
    for n in 0..4 {
        let key = key(&format!("k{n}"));
        desk.take(&key, &SessionRef::Id(id)).await;
        waiting.push(desk.wait(&key, &alone("waiter"), PATIENT).await);
        waiting.push(other.wait(&key, &alone("waiter elsewhere"), PATIENT).await);
    }
    assert!(desk.front.close_session(&id).await.expect("close answers"));
    // Which server's waiter comes first is anybody's guess: each passes the lock on.
    let mut turns = JoinSet::new();
    for waiting in waiting {
        let front = Arc::clone(&desk.front);
        turns.spawn(async move {
            let handle = got(waiting.await.expect("no panic"));
            let released = front.release(&handle.key, handle.token, &handle.session).await;
            assert!(released.expect("release answers").released);
        });
    }
    let all = async {
        while let Some(turn) = turns.join_next().await {
            turn.expect("a turn");
        }
    };
    drive(h, Duration::from_secs(60), all).await.expect("everyone gets a turn");
}
