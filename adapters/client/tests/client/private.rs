//! Sessions of a lock's own: opened, kept, closed.

use core::time::Duration;

use dlock_domain::{Applied, AttemptId, ErrorKind, SessionId};
use dlock_ports::{AcquireRequest, Current, LockService, Released, SessionRef};
use serde_json::{Value, json};

use crate::support::{
    Asked, Server, World, alone, assert_failed, got, grant, info, kept, key, named, not_granted,
    once, opened, owner, private, problem, refused, soon, token, ttl, wish,
};

/// The id of the session that the scripted server opens.
fn made() -> SessionId {
    SessionId::from_bits(0x3ade)
}

fn alone_wish(seconds: u64) -> AcquireRequest {
    let max_wait = Duration::from_secs(seconds);
    AcquireRequest { session: private(), max_wait, ..wish() }
}

fn released(released: bool) -> Value {
    json!({ "released": released, "current": "none" })
}

async fn opens(server: &mut Server) {
    let asked = server.sees("POST /v1/sessions").await;
    assert_eq!(asked.body, json!({ "owner": "worker", "ttl_ms": 10_000 }));
    asked.reply(201, opened(made())).await;
}

async fn asks(server: &mut Server) -> Asked {
    let asked = server.sees("POST /v1/locks/acquire").await;
    assert_eq!(asked.text("session_id"), made().expose());
    assert!(asked.body.get("owner").is_none() && asked.body.get("ttl_ms").is_none());
    asked
}

async fn closes(server: &mut Server) {
    let asked = server.sees("POST /v1/sessions/close").await;
    assert_eq!(asked.body, json!({ "session_id": made().expose() }));
    asked.reply(200, json!({ "closed": true })).await;
}

/// Takes the lock under this attempt.
async fn takes(server: &mut Server, world: &World, attempt: u128) {
    let asking = world.acquire(named(alone_wish(0), attempt));
    opens(server).await;
    asks(server).await.reply(200, grant(made())).await;
    assert_eq!(got(soon(asking).await.unwrap()).session, made());
}

/// Opened before the first try, in the handle, and closed by the release.
#[tokio::test]
async fn it_lives_and_ends_with_its_lock() {
    let (mut server, world) = alone().await;
    for seconds in [0, 60] {
        let asking = world.acquire(alone_wish(seconds));
        opens(&mut server).await;
        asks(&mut server).await.reply(200, grant(made())).await;
        let handle = got(soon(asking).await.unwrap());
        assert_eq!((handle.session, handle.token), (made(), token(7)));
        let asking =
            world.start(|locks| async move { locks.release(&key("k"), token(7), &made()).await });
        server.sees("POST /v1/locks/release").await.reply(200, released(true)).await;
        closes(&mut server).await;
        assert!(soon(asking).await.unwrap().unwrap().released);
    }
    server.is_quiet();
}

/// A session that the client did not make is not its to close; nor is one that still holds the lock.
#[tokio::test]
async fn it_closes_only_what_it_made_and_what_is_done() {
    let (mut server, world) = alone().await;
    let release =
        |id| world.start(move |locks| async move { locks.release(&key("k"), token(7), &id).await });
    let asking = release(made());
    server.sees("POST /v1/locks/release").await.reply(200, released(true)).await;
    soon(asking).await.unwrap().unwrap();
    takes(&mut server, &world, 5).await;
    for current in ["same", "unknown"] {
        let asking = release(made());
        let body = json!({ "released": false, "current": current });
        server.sees("POST /v1/locks/release").await.reply(200, body).await;
        assert!(!soon(asking).await.unwrap().unwrap().released);
    }
    server.is_quiet();
    let asking = release(made());
    server.sees("POST /v1/locks/release").await.reply(200, released(false)).await;
    closes(&mut server).await;
    assert!(!soon(asking).await.unwrap().unwrap().released);
}

/// Not granted, or failed for good: nothing stays open.
#[tokio::test]
async fn it_is_closed_when_nothing_is_granted() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(alone_wish(0));
    opens(&mut server).await;
    asks(&mut server).await.reply(409, not_granted()).await;
    closes(&mut server).await;
    assert_eq!(refused(soon(asking).await.unwrap()).unwrap().token, token(3));

    for attempt in [None, Some(AttemptId::from_bits(5))] {
        let asking = world.acquire(AcquireRequest { attempt, ..alone_wish(60) });
        opens(&mut server).await;
        asks(&mut server).await.refuse(403, "denied").await;
        closes(&mut server).await;
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Denied, Applied::No);
    }

    // Nothing was opened, so nothing is closed.
    let asking = world.acquire(alone_wish(0));
    let mut full = problem(429, "limit");
    full["limit"] = json!("lock.max_sessions");
    server.sees("POST /v1/sessions").await.reply(429, full).await;
    let limit = ErrorKind::Limit { limit: "lock.max_sessions" };
    assert_failed(soon(asking).await.unwrap(), limit, Applied::No);
    server.is_quiet();
}

/// What nobody can repeat is closed after a failure that may pass; closing is repeated until done.
#[tokio::test]
async fn an_unknown_outcome_is_settled_by_closing() {
    let (mut server, world) = once().await;
    let asking = world.acquire(alone_wish(0));
    opens(&mut server).await;
    asks(&mut server).await.swallow();
    for _ in 0..3 {
        server.sees("POST /v1/sessions/close").await.swallow();
        world.clock.leap_within(Duration::from_millis(20)).await;
    }
    assert!(!asking.is_finished());
    // "Gone", on a try of its own, is as good.
    let asked = server.sees("POST /v1/sessions/close").await;
    asked.reply(200, json!({ "closed": false })).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    world.settled().await;
    server.is_quiet();
}

/// The caller waits for the closing, but not for long.
#[tokio::test]
async fn a_closing_that_hangs_goes_on_behind_the_answer() {
    let (mut server, world) = once().await;
    let asking = world.acquire(alone_wish(0));
    opens(&mut server).await;
    asks(&mut server).await.reply(409, not_granted()).await;
    let hung = server.sees("POST /v1/sessions/close").await;
    assert_eq!(world.clock.leap().await, Duration::from_secs(1));
    refused(soon(asking).await.unwrap());
    assert_eq!(world.locks.unsettled(), 1);
    hung.swallow();
    world.clock.leap().await;
    closes(&mut server).await;
    world.settled().await;
}

/// "Not granted" after a lost reply is said only once the session is closed.
#[tokio::test]
async fn inv09_not_granted_means_closed() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(named(alone_wish(0), 5));
    opens(&mut server).await;
    asks(&mut server).await.swallow();
    world.clock.leap().await;
    asks(&mut server).await.reply(409, not_granted()).await;
    let asked = server.sees("POST /v1/sessions/close").await;
    assert!(!asking.is_finished());
    asked.reply(200, json!({ "closed": true })).await;
    refused(soon(asking).await.unwrap());
}

/// While its owner waits the session is kept alive, at a third of its lifetime.
#[tokio::test]
async fn it_is_kept_alive_while_waiting() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(alone_wish(60));
    opens(&mut server).await;
    let poll = asks(&mut server).await;
    for answered in [true, false, true] {
        assert_eq!(world.clock.leap().await, ttl().as_duration() / 3);
        let asked = server.sees("POST /v1/sessions/keepalive").await;
        assert_eq!(asked.body, json!({ "session_id": made().expose(), "held": [] }));
        if answered {
            asked.reply(200, kept(made(), 9_000)).await;
        } else {
            // Not loss: it is tried again.
            asked.swallow();
            world.clock.leap().await;
            let asked = server.sees("POST /v1/sessions/keepalive").await;
            asked.reply(200, kept(made(), 9_000)).await;
        }
    }
    poll.reply(200, grant(made())).await;
    got(soon(asking).await.unwrap());
    server.is_quiet();
}

/// A wait whose session could not be kept ends at once, holds nothing, and is no loss of a lock.
#[tokio::test]
async fn a_wait_whose_session_died_may_be_repeated() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(alone_wish(60));
    opens(&mut server).await;
    let poll = asks(&mut server).await;
    world.clock.leap().await;
    server.sees("POST /v1/sessions/keepalive").await.refuse(410, "session-expired").await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    poll.hangs_up().await;

    let asking = world.acquire(alone_wish(60));
    opens(&mut server).await;
    asks(&mut server).await.refuse(410, "session-expired").await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    server.is_quiet();
}

/// C20: one attempt, one session, whoever repeats it; another lock, owner or lifetime is misuse.
#[tokio::test]
async fn c20_a_repeat_finds_its_session() {
    let (mut server, world) = once().await;
    let asking = world.acquire(named(alone_wish(0), 5));
    opens(&mut server).await;
    asks(&mut server).await.swallow();
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    let beside = World {
        locks: world.locks.beside(crate::support::config(&[&server.url])).unwrap(),
        clock: world.clock.clone(),
    };
    for again in [&world, &beside] {
        let asking = again.acquire(named(alone_wish(0), 5));
        asks(&mut server).await.reply(200, grant(made())).await;
        assert_eq!(got(soon(asking).await.unwrap()).session, made());
    }
    let other = dlock_domain::OwnerId::new("other").unwrap();
    let longer = dlock_domain::Ttl::from_millis(20_000).unwrap();
    let misused = ErrorKind::InvalidArgument { field: "attempt_id" };
    for wrong in [
        AcquireRequest { key: key("another"), ..alone_wish(0) },
        AcquireRequest {
            session: SessionRef::Private { owner: other, ttl: ttl() },
            ..alone_wish(0)
        },
        AcquireRequest {
            session: SessionRef::Private { owner: owner(), ttl: longer },
            ..alone_wish(0)
        },
    ] {
        assert_failed(soon(world.acquire(named(wrong, 5))).await.unwrap(), misused, Applied::No);
    }
    // A lock's own session holds no other lock.
    let elsewhere =
        AcquireRequest { key: key("another"), session: SessionRef::Id(made()), ..wish() };
    let misused = ErrorKind::InvalidArgument { field: "session_id" };
    assert_failed(soon(world.acquire(elsewhere)).await.unwrap(), misused, Applied::No);
    server.is_quiet();
}

/// Repeats at the same time open one session.
#[tokio::test]
async fn repeats_at_once_open_one_session() {
    let (mut server, world) = alone().await;
    let asking = [(); 3].map(|()| world.acquire(named(alone_wish(0), 5)));
    opens(&mut server).await;
    for _ in 0..3 {
        asks(&mut server).await.reply(200, grant(made())).await;
    }
    for asking in asking {
        got(soon(asking).await.unwrap());
    }
    server.is_quiet();
}

/// An attempt that was answered is spent.
#[tokio::test]
async fn an_answered_attempt_is_spent() {
    let (mut server, world) = alone().await;
    takes(&mut server, &world, 5).await;
    let asking =
        world.start(|locks| async move { locks.release(&key("k"), token(7), &made()).await });
    server.sees("POST /v1/locks/release").await.reply(200, released(true)).await;
    closes(&mut server).await;
    soon(asking).await.unwrap().unwrap();
    let again = soon(world.acquire(named(alone_wish(0), 5))).await.unwrap();
    assert_failed(again, ErrorKind::InvalidArgument { field: "attempt_id" }, Applied::No);
    server.is_quiet();
}

/// Forgetting settles the attempt by its session, and closes that.
#[tokio::test]
async fn forgetting_uses_the_remembered_session() {
    let (mut server, world) = alone().await;
    takes(&mut server, &world, 5).await;
    let forget = || {
        world.start(|locks| async move {
            locks.forget(&key("k"), &private(), AttemptId::from_bits(5)).await
        })
    };
    let asking = forget();
    let asked = server.sees("POST /v1/locks/release").await;
    assert_eq!(
        asked.body,
        json!({
            "name": "k", "namespace": "default", "session_id": made().expose(),
            "attempt_id": AttemptId::from_bits(5).to_string(),
        })
    );
    asked.reply(200, released(true)).await;
    closes(&mut server).await;
    assert!(soon(asking).await.unwrap().unwrap().released);

    // Again: it is settled, and there is nothing to ask but who has the lock now.
    let asking = forget();
    server.sees("GET /v1/locks/inspect").await.reply(200, info()).await;
    let settled = Released { released: false, current: Current::Other };
    assert_eq!(soon(asking).await.unwrap().unwrap(), settled);
    let again = soon(world.acquire(named(alone_wish(0), 5))).await.unwrap();
    assert_failed(again, ErrorKind::InvalidArgument { field: "attempt_id" }, Applied::No);
}

/// What this client never sent, it sees to never sending.
#[tokio::test]
async fn forgetting_what_was_never_asked() {
    let (mut server, world) = alone().await;
    let asking = world.start(|locks| async move {
        locks.forget(&key("k"), &private(), AttemptId::from_bits(9)).await
    });
    server.sees("GET /v1/locks/inspect").await.refuse(404, "not-held").await;
    let settled = Released { released: false, current: Current::None };
    assert_eq!(soon(asking).await.unwrap().unwrap(), settled);
    let again = soon(world.acquire(named(alone_wish(0), 9))).await.unwrap();
    assert_failed(again, ErrorKind::InvalidArgument { field: "attempt_id" }, Applied::No);
    server.is_quiet();
}

/// Forgetting while the attempt waits: the wait closes the session when it is answered.
#[tokio::test]
async fn forgetting_a_waiting_attempt() {
    let (mut server, world) = alone().await;
    let waiting = world.acquire(named(alone_wish(60), 5));
    opens(&mut server).await;
    let poll = asks(&mut server).await;
    let asking = world.start(|locks| async move {
        locks.forget(&key("k"), &private(), AttemptId::from_bits(5)).await
    });
    server.sees("POST /v1/locks/release").await.reply(200, released(false)).await;
    assert!(!soon(asking).await.unwrap().unwrap().released);
    server.is_quiet();
    let mut spent = problem(422, "invalid-argument");
    spent["field"] = json!("attempt_id");
    poll.reply(422, spent).await;
    closes(&mut server).await;
    let answer = soon(waiting).await.unwrap();
    assert_failed(answer, ErrorKind::InvalidArgument { field: "attempt_id" }, Applied::No);
}
