//! INV-03 over a wire: the moment sent plus `valid_ms` (trap 34).

use core::time::Duration;

use dlock_ports::{Clock, LockService};
use serde_json::json;

use crate::support::{
    alone, got, grant, kept, key, opened, owner, session, soon, token, ttl, wish,
};

const SECOND: Duration = Duration::from_secs(1);

/// The time that an answer takes comes off.
#[tokio::test]
async fn inv03_a_deadline_counts_from_before_the_request() {
    let (mut server, world) = alone().await;
    let sent = world.clock.now();
    let asking = world.acquire(wish());
    let asked = server.sees("POST /v1/locks/acquire").await;
    world.clock.advance(2 * SECOND);
    asked.reply(200, grant(session())).await;
    let handle = got(soon(asking).await.unwrap());
    assert_eq!(handle.client_deadline, sent.after(9 * SECOND));
    // For display: what is left, and the margin of a fiftieth.
    let expiry = world.clock.wall().after(7 * SECOND + Duration::from_millis(200));
    assert_eq!(handle.server_expiry, expiry);

    let sent = world.clock.now();
    let asking =
        world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
    let asked = server.sees("POST /v1/locks/renew").await;
    world.clock.advance(SECOND);
    asked.reply(200, grant(session())).await;
    assert_eq!(soon(asking).await.unwrap().unwrap().client_deadline, sent.after(9 * SECOND));

    let sent = world.clock.now();
    let asking = world.start(|locks| async move { locks.open_session(owner(), ttl()).await });
    let asked = server.sees("POST /v1/sessions").await;
    world.clock.advance(SECOND);
    asked.reply(201, opened(session())).await;
    assert_eq!(soon(asking).await.unwrap().unwrap().client_deadline, sent.after(9 * SECOND));

    let sent = world.clock.now();
    let asking = world.start(|locks| async move { locks.keep_session(&session(), &[]).await });
    let asked = server.sees("POST /v1/sessions/keepalive").await;
    world.clock.advance(SECOND);
    asked.reply(200, kept(session(), 8_000)).await;
    let session = soon(asking).await.unwrap().unwrap().session;
    assert_eq!((session.client_deadline, session.owner), (sent.after(8 * SECOND), owner()));
}

/// It is the answered try's own moment, not the first one's and not a later one.
#[tokio::test]
async fn inv03_a_repeat_counts_from_its_own_sending() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(wish());
    let asked = server.sees("POST /v1/locks/acquire").await;
    world.clock.advance(3 * SECOND);
    asked.swallow();
    world.clock.leap().await;
    let asked = server.sees("POST /v1/locks/acquire").await;
    let sent = world.clock.now();
    world.clock.advance(SECOND);
    asked.reply(200, grant(session())).await;
    assert_eq!(got(soon(asking).await.unwrap()).client_deadline, sent.after(9 * SECOND));
}

/// After a long wait `valid_ms` may exceed the lifetime, and is still counted from the sending.
#[tokio::test]
async fn inv03_also_after_a_long_wait() {
    let (mut server, world) = alone().await;
    let sent = world.clock.now();
    let asking = world.acquire(dlock_ports::AcquireRequest { max_wait: 60 * SECOND, ..wish() });
    let asked = server.sees("POST /v1/locks/acquire").await;
    world.clock.advance(20 * SECOND);
    let mut granted = grant(session());
    granted["valid_ms"] = json!(29_000);
    asked.reply(200, granted).await;
    assert_eq!(got(soon(asking).await.unwrap()).client_deadline, sent.after(29 * SECOND));
}

/// No lease outlives one lifetime after the answer that tells of it: more is not believed, however
/// large the number.
#[tokio::test]
async fn inv03_more_than_a_lifetime_is_not_believed() {
    let (mut server, world) = alone().await;
    for valid_ms in [9_801, 10_000_000, u64::MAX] {
        let asking = world.acquire(wish());
        let asked = server.sees("POST /v1/locks/acquire").await;
        let mut granted = grant(session());
        granted["valid_ms"] = json!(valid_ms);
        asked.reply(200, granted).await;
        let deadline = got(soon(asking).await.unwrap()).client_deadline;
        assert_eq!(deadline, world.clock.now().after(ttl().reliable()));
    }
    let asking = world.acquire(wish());
    let mut granted = grant(session());
    granted["valid_ms"] = json!(0);
    server.sees("POST /v1/locks/acquire").await.reply(200, granted).await;
    assert_eq!(got(soon(asking).await.unwrap()).client_deadline, world.clock.now());
}
