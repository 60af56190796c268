//! Waiting: long polls, and how they end.

use core::time::Duration;

use dlock_domain::{Applied, ErrorKind};
use dlock_ports::{AcquireRequest, Clock, LockService};
use serde_json::json;

use crate::support::{
    World, alone, assert_failed, config, got, grant, nobody, not_granted, refused, session, soon,
    token, wish, world,
};

const SECOND: Duration = Duration::from_secs(1);

fn waits(seconds: u64) -> AcquireRequest {
    AcquireRequest { max_wait: Duration::from_secs(seconds), ..wish() }
}

/// A long wait is cut into polls of the same attempt, until it is over.
#[tokio::test]
async fn a_wait_is_cut_into_polls() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(waits(70));
    let mut attempt = None;
    for poll in [30_000, 30_000, 10_000] {
        let asked = server.sees("POST /v1/locks/acquire").await;
        assert_eq!(asked.body["max_wait_ms"], json!(poll));
        let named = asked.text("attempt_id").to_owned();
        assert_eq!(*attempt.get_or_insert_with(|| named.clone()), named);
        world.clock.advance(Duration::from_millis(poll));
        asked.reply(409, not_granted()).await;
    }
    assert_eq!(refused(soon(asking).await.unwrap()).unwrap().token, token(3));
    server.is_quiet();
}

/// `try_acquire` never waits; nor does an acquire that is told not to.
#[tokio::test]
async fn without_a_wait_there_is_one_try() {
    let (mut server, world) = alone().await;
    for only_tries in [false, true] {
        let asking = match only_tries {
            true => world.start(|locks| async move { locks.try_acquire(waits(60)).await }),
            false => world.acquire(waits(0)),
        };
        let asked = server.sees("POST /v1/locks/acquire").await;
        assert_eq!(asked.body["max_wait_ms"], json!(0));
        asked.reply(409, not_granted()).await;
        let holder = refused(soon(asking).await.unwrap()).unwrap();
        assert_eq!((holder.owner.as_str(), holder.waiter_count), ("other", 1));
        let now = world.clock.wall().as_unix_millis();
        assert_eq!(holder.acquired_at.as_unix_millis(), now - 1_000);
        assert_eq!(holder.server_expiry.as_unix_millis(), now + 2_000);
    }
}

/// Nobody may be named; the answer is the same.
#[tokio::test]
async fn the_holder_may_be_unknown() {
    let (mut server, world) = alone().await;
    for holder in [Some(json!(null)), None] {
        let asking = world.acquire(waits(0));
        let mut body = crate::support::problem(409, "not-granted");
        if let Some(holder) = holder {
            body["holder"] = holder;
        }
        server.sees("POST /v1/locks/acquire").await.reply(409, body).await;
        assert_eq!(refused(soon(asking).await.unwrap()), None);
    }
}

/// C07: no try but the first starts in the last 50 ms.
#[tokio::test]
async fn c07_no_late_try() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(waits(10));
    let asked = server.sees("POST /v1/locks/acquire").await;
    world.clock.advance(10 * SECOND - Duration::from_millis(49));
    asked.reply(409, not_granted()).await;
    assert_eq!(world.clock.leap().await, Duration::from_millis(49), "and not before its end");
    refused(soon(asking).await.unwrap());

    // Nor does one after a failure; what was unknown is settled.
    let asking = world.acquire(waits(10));
    let asked = server.sees("POST /v1/locks/acquire").await;
    world.clock.advance(10 * SECOND - Duration::from_millis(49));
    asked.swallow();
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    let forget = server.sees("POST /v1/locks/release").await;
    forget.reply(200, json!({ "released": false, "current": "other" })).await;
    world.settled().await;
    server.is_quiet();
}

/// A server that does not wait is not asked in a tight loop.
#[tokio::test]
async fn a_server_that_does_not_wait_is_asked_with_pauses() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(waits(60));
    for _ in 0..5 {
        server.sees("POST /v1/locks/acquire").await.reply(409, not_granted()).await;
        assert!(world.clock.leap().await >= Duration::from_millis(20));
    }
    server.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
    got(soon(asking).await.unwrap());
}

async fn restarts(world: &World, seconds: u64) {
    let until = world.clock.now().after(Duration::from_secs(seconds));
    while world.clock.now() < until {
        world.clock.leap().await;
    }
}

/// A wait outlives a server that is away for longer than a plain call is tried.
#[tokio::test]
async fn a_wait_survives_a_restart() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(waits(60));
    let until = world.clock.now().after(10 * SECOND);
    let mut tries = 0;
    while world.clock.now() < until {
        server.sees("POST /v1/locks/acquire").await.refuse(503, "draining").await;
        world.clock.leap().await;
        tries += 1;
    }
    assert!(tries > 4, "{tries}");
    server.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
    got(soon(asking).await.unwrap());
}

/// But not for ever: whoever waits for an hour at an address where nobody is learns of it.
#[tokio::test]
async fn a_wait_does_not_outlast_its_servers() {
    let dead = nobody().await;
    let world = world(config(&[&dead]));
    let asking = world.acquire(waits(3_600));
    restarts(&world, 14).await;
    assert!(!asking.is_finished());
    tokio::spawn({
        let clock = world.clock.clone();
        async move {
            loop {
                clock.leap().await;
            }
        }
    });
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
}

/// Waits are bounded in length and in number (C09, C32).
#[tokio::test]
async fn waits_are_bounded() {
    let (mut server, first) = alone().await;
    let too_long = AcquireRequest::MAX_WAIT + Duration::from_millis(1);
    let answer = first.acquire(AcquireRequest { max_wait: too_long, ..wish() });
    let field = ErrorKind::InvalidArgument { field: "max_wait_ms" };
    assert_failed(soon(answer).await.unwrap(), field, Applied::No);

    let mut config = config(&[&server.url]);
    config.max_waiting = 1;
    let world = world(config);
    let waiting = world.acquire(waits(60));
    let asked = server.sees("POST /v1/locks/acquire").await;
    let full = soon(world.acquire(waits(60))).await.unwrap();
    assert_failed(full, ErrorKind::Limit { limit: "client.max_waiting" }, Applied::No);
    let at_once = world.acquire(waits(0));
    server.sees("POST /v1/locks/acquire").await.reply(409, not_granted()).await;
    refused(soon(at_once).await.unwrap());
    asked.reply(200, grant(session())).await;
    got(soon(waiting).await.unwrap());
    let next = world.acquire(waits(60));
    server.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
    got(soon(next).await.unwrap());
}
