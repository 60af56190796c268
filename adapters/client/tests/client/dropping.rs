//! Callers who go away (INV-09, traps 38 and 41; C23).

use core::time::Duration;

use dlock_domain::SessionId;
use dlock_ports::{AcquireRequest, LockService};
use serde_json::json;

use crate::support::{
    alone, got, grant, key, named, not_granted, opened, owner, private, session, soon, token, ttl,
    wish,
};

fn waits() -> AcquireRequest {
    AcquireRequest { max_wait: Duration::from_secs(60), ..wish() }
}

/// Dropped while it waits: the server sees it hang up, and the attempt is settled.
#[tokio::test]
async fn inv09_a_dropped_wait_is_settled() {
    let (mut server, world) = alone().await;
    for request in [wish(), waits()] {
        let asking = world.acquire(request);
        let asked = server.sees("POST /v1/locks/acquire").await;
        let attempt = asked.text("attempt_id").to_owned();
        asking.abort();
        asked.hangs_up().await;
        let forget = server.sees("POST /v1/locks/release").await;
        assert_eq!(
            forget.body,
            json!({
                "name": "k", "namespace": "default", "session_id": session().expose(),
                "attempt_id": attempt,
            })
        );
        assert_eq!(world.locks.unsettled(), 1);
        forget.reply(200, json!({ "released": true, "current": "none" })).await;
        world.settled().await;
    }
    server.is_quiet();
}

/// Settling is repeated until it is done, with pauses.
#[tokio::test]
async fn inv09_settling_is_repeated_until_done() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(waits());
    let asked = server.sees("POST /v1/locks/acquire").await;
    asking.abort();
    asked.hangs_up().await;
    for _ in 0..10 {
        server.sees("POST /v1/locks/release").await.swallow();
        assert!(world.clock.leap().await >= Duration::from_millis(20));
    }
    let forget = server.sees("POST /v1/locks/release").await;
    forget.reply(200, json!({ "released": false, "current": "none" })).await;
    world.settled().await;
}

/// A private session is closed, which settles all under it; also one that was still being opened.
#[tokio::test]
async fn inv09_a_dropped_private_acquire_closes_its_session() {
    let (mut server, world) = alone().await;
    let made = SessionId::from_bits(9);
    for while_opening in [true, false] {
        let asking = world.acquire(AcquireRequest { session: private(), ..waits() });
        let opening = server.sees("POST /v1/sessions").await;
        if while_opening {
            asking.abort();
            opening.reply(201, opened(made)).await;
        } else {
            opening.reply(201, opened(made)).await;
            let asked = server.sees("POST /v1/locks/acquire").await;
            asking.abort();
            asked.hangs_up().await;
        }
        let close = server.sees("POST /v1/sessions/close").await;
        assert_eq!(close.body, json!({ "session_id": made.expose() }));
        close.reply(200, json!({ "closed": true })).await;
        world.settled().await;
        server.is_quiet();
    }
}

/// A caller that chose its attempt's id may come back: its connection ends, its session stays, and
/// the repeat finds both.
#[tokio::test]
async fn who_can_come_back_is_waited_for() {
    let (mut server, world) = alone().await;
    let made = SessionId::from_bits(9);
    for (session_ref, id) in [(wish().session, session()), (private(), made)] {
        let request = || named(AcquireRequest { session: session_ref.clone(), ..waits() }, 5);
        let asking = world.acquire(request());
        if id == made {
            server.sees("POST /v1/sessions").await.reply(201, opened(made)).await;
        }
        let asked = server.sees("POST /v1/locks/acquire").await;
        let body = asked.body.clone();
        asking.abort();
        asked.hangs_up().await;
        world.settled().await;
        let asking = world.acquire(request());
        let asked = server.sees("POST /v1/locks/acquire").await;
        assert_eq!(asked.body, body);
        asked.reply(200, grant(id)).await;
        assert_eq!(got(soon(asking).await.unwrap()).session, id);
    }
    server.is_quiet();
}

/// C23: whatever the moment at which a caller leaves, either it got the grant, or it is settled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c23_a_grant_is_claimed_or_settled() {
    let (mut server, world) = alone().await;
    for round in 0..200_u32 {
        let asking = world.acquire(wish());
        let asked = server.sees("POST /v1/locks/acquire").await;
        let answering = tokio::spawn(asked.reply(200, grant(session())));
        for _ in 0..round % 40 {
            tokio::task::yield_now().await;
        }
        asking.abort();
        // The reply may meet a connection that is gone.
        let _ = soon(answering).await;
        match soon(asking).await {
            Ok(answer) => assert_eq!(got(answer).token, token(7)),
            Err(aborted) => {
                assert!(aborted.is_cancelled());
                let forget = server.sees("POST /v1/locks/release").await;
                forget.reply(200, json!({ "released": true, "current": "none" })).await;
            }
        }
        world.settled().await;
        server.is_quiet();
    }
}

/// An open session that nobody takes is closed.
#[tokio::test]
async fn an_unclaimed_session_is_closed() {
    let (mut server, world) = alone().await;
    let asking = world.start(|locks| async move { locks.open_session(owner(), ttl()).await });
    let asked = server.sees("POST /v1/sessions").await;
    asking.abort();
    assert!(soon(asking).await.unwrap_err().is_cancelled());
    asked.reply(201, opened(session())).await;
    let close = server.sees("POST /v1/sessions/close").await;
    close.reply(200, json!({ "closed": true })).await;
    world.settled().await;
}

/// A release whose caller leaves is seen to its end, over lost replies too.
#[tokio::test]
async fn a_release_outlives_its_caller() {
    let (mut server, world) = alone().await;
    let asking =
        world.start(|locks| async move { locks.release(&key("k"), token(7), &session()).await });
    let asked = server.sees("POST /v1/locks/release").await;
    asking.abort();
    assert!(soon(asking).await.unwrap_err().is_cancelled());
    asked.swallow();
    world.clock.leap().await;
    let asked = server.sees("POST /v1/locks/release").await;
    asked.reply(200, json!({ "released": true, "current": "none" })).await;
    assert!(soon(world.locks.shutdown(Duration::from_secs(60))).await);
}

/// A shutdown waits for what is being settled, and gives up what cannot be.
#[tokio::test]
async fn a_shutdown_waits_for_what_is_under_way() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(waits());
    let asked = server.sees("POST /v1/locks/acquire").await;
    asking.abort();
    asked.hangs_up().await;
    let forget = server.sees("POST /v1/locks/release").await;
    let ending = world.start(|locks| async move { locks.shutdown(Duration::from_secs(5)).await });
    forget.reply(200, json!({ "released": false, "current": "none" })).await;
    assert!(soon(ending).await.unwrap());

    let asking = world.acquire(waits());
    let asked = server.sees("POST /v1/locks/acquire").await;
    asking.abort();
    asked.hangs_up().await;
    let hung = server.sees("POST /v1/locks/release").await;
    let ending = world.start(|locks| async move { locks.shutdown(Duration::from_secs(5)).await });
    assert_eq!(world.clock.leap().await, Duration::from_secs(5));
    assert!(!soon(ending).await.unwrap());
    hung.swallow();
    // One more round, without a pause between rounds, and that is the end of it.
    for _ in 0..3 {
        world.clock.leap().await;
        server.sees("POST /v1/locks/release").await.swallow();
    }
    for again in [true, true, true, false] {
        server.sees("POST /v1/locks/release").await.swallow();
        if again {
            world.clock.leap().await;
        }
    }
    world.settled().await;
    server.is_quiet();

    // Another acquire is as welcome as before.
    let asking = world.acquire(wish());
    server.sees("POST /v1/locks/acquire").await.reply(409, not_granted()).await;
    soon(asking).await.unwrap().unwrap();
}
