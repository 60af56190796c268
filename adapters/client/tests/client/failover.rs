//! Several servers: who is asked, and when again.

use core::time::Duration;

use dlock_domain::{Applied, ErrorKind};
use dlock_ports::LockService;
use serde_json::json;

use crate::support::{
    Server, assert_failed, config, got, grant, info, key, nobody, once, opened, owner, problem,
    session, soon, ttl, wish, world,
};

/// Nobody listens at the first address: nothing was sent, so it is asked at the next, at once.
#[tokio::test]
async fn who_is_not_there_is_passed_over() {
    let dead = nobody().await;
    let mut server = Server::start().await;
    let world = world(config(&[&dead, &server.url]));
    for _ in 0..2 {
        let asking = world.acquire(wish());
        server.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
        assert_eq!(got(soon(asking).await.unwrap()).token.get(), 7);
    }
}

/// Nobody is there at all: a definite failure, after as many tries as the budget has.
#[tokio::test]
async fn when_nobody_is_there_nothing_has_happened() {
    let (one, two) = (nobody().await, nobody().await);
    let world = world(config(&[&one, &two]));
    let asking = world.acquire(wish());
    // Two rounds of two, with a pause between them.
    assert!(world.clock.leap().await >= Duration::from_millis(20));
    let error = assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    let detail = error.detail();
    assert!(detail.contains(one.as_str()) || detail.contains(two.as_str()), "{detail}");
}

/// A server that is going, or has no leader, sends its clients on; they stay with the next.
#[tokio::test]
async fn who_sends_us_on_is_left() {
    for kind in ["draining", "not-leader"] {
        let (mut a, mut b) = (Server::start().await, Server::start().await);
        let world = world(config(&[&a.url, &b.url]));
        let asking = world.start(|locks| async move { locks.open_session(owner(), ttl()).await });
        a.sees("POST /v1/sessions").await.refuse(503, kind).await;
        b.sees("POST /v1/sessions").await.reply(201, opened(session())).await;
        assert_eq!(soon(asking).await.unwrap().unwrap().id, session());
        let asking = world.start(|locks| async move { locks.inspect(&key("k")).await });
        b.sees("GET /v1/locks/inspect").await.reply(200, info()).await;
        assert!(soon(asking).await.unwrap().unwrap().is_some());
        a.is_quiet();
    }
}

/// A server that accepts and never answers: the time-out is of unknown effect, the next server is
/// asked for the same attempt.
#[tokio::test]
async fn who_hangs_is_left() {
    let (mut a, mut b) = (Server::start().await, Server::start().await);
    let mut config = config(&[&a.url, &b.url]);
    config.call_timeout = Duration::from_millis(300);
    let world = world(config);
    let asking = world.acquire(wish());
    let hung = a.sees("POST /v1/locks/acquire").await;
    let asked = b.sees("POST /v1/locks/acquire").await;
    assert_eq!(asked.body, hung.body);
    asked.reply(200, grant(session())).await;
    assert_eq!(got(soon(asking).await.unwrap()).token.get(), 7);
}

/// `Retry-After` is the least pause before the same server is asked again.
#[tokio::test]
async fn retry_after_is_honoured() {
    let mut server = Server::start().await;
    let world = world(config(&[&server.url]));
    let asking = world.acquire(wish());
    let asked = server.sees("POST /v1/locks/acquire").await;
    asked.reply_with(503, "retry-after: 7\r\n", problem(503, "contention")).await;
    assert_eq!(world.clock.leap().await, Duration::from_secs(7));
    let asked = server.sees("POST /v1/locks/acquire").await;
    asked.reply_with(503, "retry-after: 0\r\n", problem(503, "contention")).await;
    assert!(world.clock.leap().await < Duration::from_secs(1));
    server.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
    got(soon(asking).await.unwrap());
}

/// A server that wants to rest lets the others be asked meanwhile, also out of turn.
#[tokio::test]
async fn retry_after_is_one_servers_wish() {
    let (mut a, mut b) = (Server::start().await, Server::start().await);
    let world = world(config(&[&a.url, &b.url]));
    let asking = world.acquire(wish());
    let asked = a.sees("POST /v1/locks/acquire").await;
    asked.reply_with(503, "retry-after: 9\r\n", problem(503, "contention")).await;
    b.sees("POST /v1/locks/acquire").await.refuse(503, "contention").await;
    assert!(world.clock.leap().await < Duration::from_secs(1), "not the 9 s of the other");
    b.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
    got(soon(asking).await.unwrap());
    a.is_quiet();
}

/// Absurd or unreadable wishes don't stop a call for ever.
#[tokio::test]
async fn an_absurd_retry_after_ends_the_call() {
    let mut server = Server::start().await;
    let world = world(config(&[&server.url]));
    for header in ["retry-after: 18446744073709551615\r\n", "retry-after: 86400\r\n"] {
        let asking = world.acquire(wish());
        let asked = server.sees("POST /v1/locks/acquire").await;
        asked.reply_with(503, header, problem(503, "contention")).await;
        // 30 s are believed, and they exceed the budget.
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    }
    let asking = world.acquire(wish());
    let asked = server.sees("POST /v1/locks/acquire").await;
    let date = "retry-after: Fri, 31 Dec 2027 23:59:59 GMT\r\n";
    asked.reply_with(503, date, problem(503, "contention")).await;
    assert!(world.clock.leap().await < Duration::from_secs(1));
    server.sees("POST /v1/locks/acquire").await.reply(200, grant(session())).await;
    got(soon(asking).await.unwrap());
}

/// The budget ends a call whose servers all fail, and the last word is passed on.
#[tokio::test]
async fn the_budget_bounds_a_call() {
    let mut server = Server::start().await;
    let world = world(config(&[&server.url]));
    let asking = world.start(|locks| async move { locks.look_session(&session()).await });
    for again in [true, true, true, false] {
        server.sees("POST /v1/sessions/look").await.refuse(503, "not-leader").await;
        if again {
            world.clock.leap().await;
        }
    }
    assert_failed(soon(asking).await.unwrap(), ErrorKind::NotLeader, Applied::No);
    server.is_quiet();
}

/// With one try nothing is repeated, whatever it was.
#[tokio::test]
async fn a_client_may_be_told_never_to_repeat() {
    let (mut server, world) = once().await;
    for max_wait in [0, 60] {
        let mut wish = wish();
        wish.max_wait = Duration::from_secs(max_wait);
        let asking = world.acquire(crate::support::named(wish, 5));
        server.sees("POST /v1/locks/acquire").await.swallow();
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    }
    server.is_quiet();
}

/// A redirect is no answer: secrets go to nobody else.
#[tokio::test]
async fn redirects_are_not_followed() {
    let (mut server, world) = once().await;
    let mut other = Server::start().await;
    let asking = world.start(|locks| async move {
        locks.release(&key("k"), crate::support::token(7), &session()).await
    });
    let location = format!("location: {}/v1/locks/release\r\n", other.url);
    let asked = server.sees("POST /v1/locks/release").await;
    asked.reply_with(307, &location, json!({})).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    other.is_quiet();
}

/// What a request says besides its body; nothing of the environment gets in.
#[tokio::test]
async fn a_request_says_who_sends_it() {
    let (mut server, world) = once().await;
    let asking = world.acquire(wish());
    let asked = server.sees("POST /v1/locks/acquire").await;
    let head = asked.head.to_ascii_lowercase();
    let host = server.url.as_str().trim_start_matches("http://").to_owned();
    for line in [
        format!("host: {host}\r\n"),
        concat!("user-agent: dlock/", env!("CARGO_PKG_VERSION"), "\r\n").to_owned(),
        "content-type: application/json\r\n".to_owned(),
    ] {
        assert!(head.contains(&line), "{line:?} in {head}");
    }
    asked.reply(200, grant(session())).await;
    got(soon(asking).await.unwrap());
}
