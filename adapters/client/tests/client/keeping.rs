//! Keeping sessions alive, however many grants they have.

use core::time::Duration;

use dlock_domain::{Applied, ErrorKind, FencingToken, LockKey, SessionId};
use dlock_ports::{Clock, LockService};
use serde_json::{Value, json};

use crate::support::{
    World, alone, assert_failed, kept, key, once, opened, owner, session, soon, token, ttl,
};

fn looked(id: SessionId) -> Value {
    let mut body = opened(id);
    body["grants"] = json!([{
        "name": "k", "namespace": "default", "fencing_token": 7,
        "attempt_id": "0000000000000000000000000000000a",
    }]);
    body
}

fn held(name: &str, count: u64) -> Vec<(LockKey, FencingToken)> {
    (1..=count).map(|number| (key(&format!("{name}{number}")), token(number))).collect()
}

/// The answer does not name the owner: for a session of somebody else's, a look does, once.
#[tokio::test]
async fn the_owner_is_looked_up_once() {
    let (mut server, world) = alone().await;
    for again in [false, true] {
        let asking = world.start(|locks| async move { locks.keep_session(&session(), &[]).await });
        if !again {
            server.sees("POST /v1/sessions/look").await.reply(200, looked(session())).await;
        }
        let asked = server.sees("POST /v1/sessions/keepalive").await;
        assert_eq!(asked.body, json!({ "session_id": session().expose(), "held": [] }));
        asked.reply(200, kept(session(), 9_000)).await;
        let answer = soon(asking).await.unwrap().unwrap();
        assert_eq!((answer.session.owner, answer.session.ttl), (owner(), ttl()));
    }
}

async fn known(server: &mut crate::support::Server, world: &World) {
    let asking = world.start(|locks| async move { locks.open_session(owner(), ttl()).await });
    let asked = server.sees("POST /v1/sessions").await;
    assert_eq!(asked.body, json!({ "owner": "worker", "ttl_ms": 10_000 }));
    asked.reply(201, opened(session())).await;
    soon(asking).await.unwrap().unwrap();
}

/// Many grants go in several calls: every one is listed once, what is lost is put together, and
/// the earliest deadline holds for all (INV-03).
#[tokio::test]
async fn many_grants_are_kept_in_parts() {
    let (mut server, world) = alone().await;
    known(&mut server, &world).await;
    let long = format!("{}\u{e9}", "\"".repeat(500));
    for (name, most) in [("k", 200), (&*long, 60)] {
        let listed = held(name, 450);
        let began = world.clock.now();
        let asking = world.start({
            let listed = listed.clone();
            |locks| async move { locks.keep_session(&session(), &listed).await }
        });
        let mut seen = Vec::new();
        let mut calls = 0_u64;
        while seen.len() < listed.len() {
            let asked = server.sees("POST /v1/sessions/keepalive").await;
            assert!(asked.length <= 64 * 1024, "a body of {} bytes", asked.length);
            let part = asked.body["held"].as_array().unwrap().clone();
            assert!(!part.is_empty() && part.len() <= most, "{} entries", part.len());
            let mut body = kept(
                session(),
                [9_000, 6_000, 8_000][usize::from(calls == 1) + usize::from(calls > 1) * 2],
            );
            body["lost"] = json!([part[0].clone()]);
            seen.extend(part);
            calls += 1;
            asked.reply(200, body).await;
        }
        let names = seen.iter().map(|entry| entry["name"].as_str().unwrap());
        assert!(names.eq(listed.iter().map(|(key, _)| key.name().as_str())));
        let answer = soon(asking).await.unwrap().unwrap();
        assert_eq!(answer.lost.len() as u64, calls);
        assert!(answer.lost.contains(&listed[0]));
        assert_eq!(answer.session.client_deadline, began.after(Duration::from_secs(6)));
    }
}

/// If a part fails, no deadline has moved and nothing is called lost.
#[tokio::test]
async fn a_part_that_fails_fails_the_whole() {
    let (mut server, world) = once().await;
    known(&mut server, &world).await;
    let asking =
        world.start(|locks| async move { locks.keep_session(&session(), &held("k", 201)).await });
    let asked = server.sees("POST /v1/sessions/keepalive").await;
    let mut body = kept(session(), 9_000);
    body["lost"] = json!([asked.body["held"][0].clone()]);
    asked.reply(200, body).await;
    server.sees("POST /v1/sessions/keepalive").await.swallow();
    assert_failed(soon(asking).await.unwrap().map(drop), ErrorKind::Contention, Applied::Unknown);
}

/// Nothing is lost that was not listed: such an answer is nobody's.
#[tokio::test]
async fn what_was_not_listed_is_not_lost() {
    let (mut server, world) = once().await;
    known(&mut server, &world).await;
    for lost in [
        json!([{ "name": "other", "namespace": "default", "fencing_token": 1 }]),
        json!([{ "name": "k1", "namespace": "default", "fencing_token": 2 }]),
        json!([{ "name": "", "namespace": "default", "fencing_token": 1 }]),
        json!({}),
        Value::Null,
    ] {
        let asking =
            world.start(|locks| async move { locks.keep_session(&session(), &held("k", 1)).await });
        let asked = server.sees("POST /v1/sessions/keepalive").await;
        let mut body = kept(session(), 9_000);
        body["lost"] = lost;
        asked.reply(200, body).await;
        let answer = soon(asking).await.unwrap().map(drop);
        assert_failed(answer, ErrorKind::Contention, Applied::Unknown);
    }
}

/// C12: a server that accepts and never answers leaves time for the next, however long the
/// configured time-out is.
#[tokio::test]
async fn c12_a_keep_alive_does_not_wait_out_its_lease() {
    let (mut a, mut b) =
        (crate::support::Server::start().await, crate::support::Server::start().await);
    let world = crate::support::world(crate::support::config(&[&a.url, &b.url]));
    let second = dlock_domain::Ttl::from_millis(1_000).unwrap();
    let asking = world.start(|locks| async move { locks.open_session(owner(), second).await });
    let mut body = opened(session());
    body["ttl_ms"] = json!(1_000);
    a.sees("POST /v1/sessions").await.reply(201, body).await;
    soon(asking).await.unwrap().unwrap();
    let asking = world.start(|locks| async move { locks.keep_session(&session(), &[]).await });
    let hung = a.sees("POST /v1/sessions/keepalive").await;
    b.sees("POST /v1/sessions/keepalive").await.reply(200, kept(session(), 900)).await;
    assert!(soon(asking).await.unwrap().is_ok());
    hung.hangs_up().await;
}

/// A look, and a session that is not there.
#[tokio::test]
async fn a_look_lists_grants_and_a_dead_session_is_said_to_be() {
    let (mut server, world) = alone().await;
    let asking = world.start(|locks| async move { locks.look_session(&session()).await });
    let asked = server.sees("POST /v1/sessions/look").await;
    assert_eq!(asked.body, json!({ "session_id": session().expose() }));
    assert_eq!(asked.query, None, "a secret is in no URL");
    asked.reply(200, looked(session())).await;
    let (found, grants) = soon(asking).await.unwrap().unwrap();
    assert_eq!((found.id, grants.len()), (session(), 1));
    assert_eq!(
        (&grants[0].key, grants[0].token, grants[0].attempt.bits()),
        (&key("k"), token(7), 10)
    );

    let asking = world.start(|locks| async move { locks.keep_session(&session(), &[]).await });
    server.sees("POST /v1/sessions/keepalive").await.refuse(410, "session-expired").await;
    assert_failed(soon(asking).await.unwrap().map(drop), ErrorKind::SessionExpired, Applied::No);
}

/// Trap 37: a keep-alive ends with its future.
#[tokio::test]
async fn a_keep_alive_dies_with_its_keeper() {
    let (mut server, world) = alone().await;
    known(&mut server, &world).await;
    let asking = world.start(|locks| async move { locks.keep_session(&session(), &[]).await });
    let asked = server.sees("POST /v1/sessions/keepalive").await;
    asking.abort();
    asked.hangs_up().await;
    server.is_quiet();
}
