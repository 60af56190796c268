//! Several locks in one session, with one keeper.

use std::collections::BTreeSet;

use dlock_domain::AttemptId;
use dlock_ports::{AcquireRequest, Acquired, SessionRef};

use super::{
    odd::{Call, Do},
    *,
};
use crate::keeper::LossReason;

#[tokio::test]
async fn one_keeper_keeps_them_all_and_lists_only_what_is_held() {
    let world = world();
    let session = world.locks.session("billing", TTL).await.unwrap();
    assert_eq!((session.owner().as_str(), session.ttl().as_duration()), ("billing", TTL));
    let a = session.lock("a").acquire().await.unwrap();
    let b = session.lock("b").namespace("other").acquire().await.unwrap();
    let c = session.clone().lock("c").acquire().await.unwrap();
    world.pass(TTL * 2).await;
    let kept = world.odd.kept();
    assert!((5..=8).contains(&kept.len()), "{} calls for two lifetimes", kept.len());
    let all = BTreeSet::from([a.key(), b.key(), c.key()]);
    assert!(kept.iter().all(|keys| keys.iter().collect::<BTreeSet<_>>() == all));
    a.release().await.unwrap();
    drop(c);
    world.locks.settled().await;
    world.pass(TTL).await;
    assert_eq!(world.odd.kept().last().unwrap(), &[b.key().clone()]);
    assert!(b.is_held());
    assert!(world.holder("a").await.is_none() && world.holder("c").await.is_none());
}

#[tokio::test]
async fn c23_guards_dropped_in_a_shared_session_are_free_while_it_lives_on() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    let other = session.lock("other").acquire().await.unwrap();
    for n in 0..1_000_usize {
        let lock = session.lock("k").acquire().await.unwrap();
        for _ in 0..n % 6 {
            tokio::task::yield_now().await;
        }
        drop(lock);
        world.locks.settled().await;
        assert!(world.holder("k").await.is_none(), "drop number {n}");
        let lock = polled(session.lock("k").wait(TTL).acquire(), n % 8).await;
        drop(lock);
        world.locks.settled().await;
        assert!(world.holder("k").await.is_none(), "attempt number {n}");
    }
    world.pass(TTL * 2).await;
    assert!(world.odd.kept().iter().all(|keys| keys == &[other.key().clone()]));
    assert!(other.is_held());
}

#[tokio::test]
async fn what_a_session_says_cannot_be_said_again() {
    let world = world();
    let session = world.locks.session("billing", TTL).await.unwrap();
    for (lock, field) in
        [(session.lock("k").ttl(TTL), "ttl_ms"), (session.lock("k").owner("me"), "owner")]
    {
        let Err(AcquireError::Failed(error)) = lock.acquire().await else { panic!("{field}") };
        assert_eq!(error.field(), Some(field));
    }
    let lock = world.locks.lock("k").ttl(TTL * 2).session(&session).acquire().await.unwrap();
    assert_eq!(world.holder("k").await.unwrap().owner.as_str(), "billing");
    assert!(lock.remaining() <= TTL);
    assert_eq!(world.locks.session("", TTL).await.unwrap_err().field(), Some("owner"));
    assert_eq!(world.locks.session("x", TTL * 99_999).await.unwrap_err().field(), Some("ttl_ms"));
}

#[tokio::test]
async fn trap_13_a_stray_is_released_and_what_is_awaited_is_not() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    // A duplicate of an acquire nobody waits for any more.
    let stray = AcquireRequest {
        key: key("stray"),
        session: SessionRef::Id(session.hold().session()),
        attempt: Some(AttemptId::from_bits(77)),
        max_wait: Duration::ZERO,
    };
    let granted = world.service.acquire(stray).await.unwrap();
    assert!(matches!(granted, Acquired::Granted(_)));
    // A grant whose reply is on its way for a long time.
    world.odd.acquires.next([Some(Do::HoldReply)]);
    let slow = tokio::spawn(session.lock("slow").wait(TTL).acquire());
    breathe().await;
    // A lock whose release takes just as long.
    let leaving = session.lock("leaving").acquire().await.unwrap();
    let token = leaving.token();
    world.odd.releases.then(Some(Do::HoldRequest));
    let release = tokio::spawn(leaving.release());
    breathe().await;
    let held = world.holder("slow").await.unwrap();
    world.pass(RELIABLE - TTL / 20).await;
    assert_eq!(world.holder("leaving").await.unwrap().token, token, "it is being released");
    world.pass(TTL * 3).await;
    assert!(world.holder("stray").await.is_none());
    assert!(release.await.unwrap().is_err());
    world.pass(TTL * 3).await;
    assert!(world.holder("leaving").await.is_none(), "the keeper saw to it");
    assert_eq!(world.holder("slow").await.unwrap().token, held.token);
    assert_eq!(world.odd.count(|call| matches!(call, Call::Forget(_))), 2);
    drop(slow);
}

#[tokio::test]
async fn an_old_guard_does_not_let_go_of_a_newer_grant() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    let old = session.lock("k").acquire().await.unwrap();
    world.revoke("k").await;
    let new = session.lock("k").acquire().await.unwrap();
    assert!(!old.is_held(), "its key has a newer grant");
    assert_eq!(old.lost().await.reason, LossReason::Gone);
    assert!(matches!(old.release().await, Err(ReleaseError::Lost)));
    world.pass(TTL * 3).await;
    assert!(new.is_held());
    assert_eq!(world.holder("k").await.unwrap().token, new.token());
}

#[tokio::test]
async fn c15_exactly_what_is_gone_is_lost() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    let a = session.lock("a").acquire().await.unwrap();
    let b = session.lock("b").acquire().await.unwrap();
    world.revoke("a").await;
    world.pass(TTL / 2).await;
    assert_eq!(ready(a.lost()).unwrap().reason, LossReason::Gone);
    assert!(b.is_held() && ready(b.lost()).is_none());
    world.service.close_session(&session.hold().session()).await.unwrap();
    world.pass(TTL / 2).await;
    assert_eq!(ready(b.lost()).unwrap().reason, LossReason::SessionGone);
}

#[tokio::test]
async fn closing_frees_everything_and_no_guard_says_held_any_more() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    let a = session.lock("a").acquire().await.unwrap();
    let b = session.lock("b").acquire().await.unwrap();
    let late = session.clone();
    let closing = session.close();
    let mut closing = pin!(closing);
    assert!(once(closing.as_mut()).is_none());
    assert!(!a.is_held() && !b.is_held(), "from the call on");
    assert!(closing.await.unwrap());
    assert_eq!(a.lost().await.reason, LossReason::SessionGone);
    assert!(world.holder("a").await.is_none() && world.holder("b").await.is_none());
    let Err(AcquireError::Failed(error)) = late.lock("c").acquire().await else { panic!() };
    assert_eq!(error.kind(), dlock_domain::ErrorKind::SessionExpired);
    drop((a, b, late));
    world.locks.settled().await;
    assert_eq!(world.odd.count(|call| *call == Call::Close), 1);
}

#[tokio::test]
async fn a_session_ends_with_the_last_that_needs_it() {
    let world = world();
    let session = world.locks.session("shared", TTL).await.unwrap();
    let id = session.hold().session();
    let lock = session.lock("k").acquire().await.unwrap();
    drop(session);
    world.pass(TTL * 2).await;
    assert!(lock.is_held());
    assert_eq!(world.odd.count(|call| *call == Call::Close), 0);
    lock.release().await.unwrap();
    world.locks.settled().await;
    assert_eq!(world.odd.count(|call| *call == Call::Close), 1);
    assert!(world.service.look_session(&id).await.is_err());
    let made = world.odd.kept().len();
    world.pass(TTL).await;
    assert_eq!(world.odd.kept().len(), made);
}
