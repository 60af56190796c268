//! Inspecting, listing, revoking, raising floors.

use dlock_domain::{
    Applied, ErrorKind, LockName, LockOutcome, Namespace, OwnerId, Reason, TokenFloor,
};
use dlock_ports::{ListRequest, LockService, Raised, RevokeRequest};
use serde_json::{Value, json};

use crate::support::{alone, assert_failed, info, key, once, problem, soon, token};

fn named(name: &str) -> Value {
    let mut info = info();
    info["name"] = json!(name);
    info
}

/// C30: every name arrives as it is, and comes back as it is.
#[tokio::test]
async fn c30_names_are_encoded_strictly() {
    let (mut server, world) = alone().await;
    for (name, encoded) in [
        ("a", "a"),
        ("a/", "a%2F"),
        ("//", "%2F%2F"),
        ("..", ".."),
        ("%2F", "%252F"),
        ("%25", "%2525"),
        ("a+b", "a%2Bb"),
        ("a b", "a%20b"),
        ("?x=1", "%3Fx%3D1"),
        ("a&namespace=b", "a%26namespace%3Db"),
        ("#", "%23"),
        ("'\"<>`", "%27%22%3C%3E%60"),
        ("\u{1f512}", "%F0%9F%94%92"),
        ("\u{e9}", "%C3%A9"),
        ("e\u{301}", "e%CC%81"),
    ] {
        let lock = key(name);
        let asking = world.start(|locks| async move { locks.inspect(&lock).await });
        let asked = server.sees("GET /v1/locks/inspect").await;
        assert_eq!(asked.query, Some(format!("name={encoded}&namespace=default")));
        asked.reply(200, named(name)).await;
        let found = soon(asking).await.unwrap().unwrap().unwrap();
        assert_eq!((found.key, found.session), (key(name), None));
    }
}

/// Nobody holds it: only dlock's own word for that counts.
#[tokio::test]
async fn not_held_is_said_by_a_server_of_ours() {
    let (mut server, world) = once().await;
    let inspect = || world.start(|locks| async move { locks.inspect(&key("k")).await });
    let asking = inspect();
    server.sees("GET /v1/locks/inspect").await.refuse(404, "not-held").await;
    assert_eq!(soon(asking).await.unwrap().unwrap(), None);
    let asking = inspect();
    let page = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    server.sees("GET /v1/locks/inspect").await.raw(page).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    let asking = inspect();
    server.sees("GET /v1/locks/inspect").await.reply(200, named("another")).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
}

fn listing(prefix: &str, after: Option<&str>, limit: u16) -> ListRequest {
    let after = after.map(|name| LockName::new(name).unwrap());
    ListRequest { namespace: Namespace::default(), prefix: prefix.into(), after, limit }
}

/// Pages go on where the server says.
#[tokio::test]
async fn a_listing_goes_on_page_by_page() {
    let (mut server, world) = alone().await;
    let list = |request| world.start(|locks| async move { locks.list(request).await });
    let asking = list(listing("a/", None, 2));
    let asked = server.sees("GET /v1/locks").await;
    assert_eq!(asked.query.as_deref(), Some("namespace=default&limit=2&prefix=a%2F"));
    let body = json!({ "locks": [named("a/1"), named("a/2")], "next_cursor": "612f32" });
    asked.reply(200, body).await;
    let page = soon(asking).await.unwrap().unwrap();
    assert_eq!((page.locks.len(), page.next.as_ref().unwrap().as_str()), (2, "a/2"));

    // A page may be empty and not the last; a cursor that cannot be read is the last lock's.
    let asking = list(listing("", Some("a/2"), 0));
    let asked = server.sees("GET /v1/locks").await;
    assert_eq!(asked.query.as_deref(), Some("namespace=default&limit=1&cursor=612f32"));
    asked.reply(200, json!({ "locks": [], "next_cursor": "612f33" })).await;
    assert_eq!(soon(asking).await.unwrap().unwrap().next.unwrap().as_str(), "a/3");
    let asking = list(listing("", None, u16::MAX));
    let asked = server.sees("GET /v1/locks").await;
    assert_eq!(asked.query.as_deref(), Some("namespace=default&limit=500"));
    asked.reply(200, json!({ "locks": [named("b")], "next_cursor": "!" })).await;
    assert_eq!(soon(asking).await.unwrap().unwrap().next.unwrap().as_str(), "b");
    let asking = list(listing("", Some("b"), 10));
    server.sees("GET /v1/locks").await.reply(200, json!({ "locks": [] })).await;
    let last = soon(asking).await.unwrap().unwrap();
    assert!(last.locks.is_empty() && last.next.is_none());
}

/// A listing that would go round in circles, or lists what was not asked for, is nobody's.
#[tokio::test]
async fn a_listing_goes_forward() {
    let (mut server, world) = once().await;
    let mut elsewhere = named("c");
    elsewhere["namespace"] = json!("another");
    for body in [
        json!({ "locks": [named("b")], "next_cursor": null }),
        json!({ "locks": [named("a")], "next_cursor": null }),
        json!({ "locks": [named("d"), named("c")], "next_cursor": null }),
        json!({ "locks": [named("c"), named("c")], "next_cursor": null }),
        json!({ "locks": [elsewhere], "next_cursor": null }),
        json!({ "locks": [named("c")], "next_cursor": "62" }),
        json!({ "locks": [], "next_cursor": "62" }),
        json!({ "locks": [], "next_cursor": "!" }),
        json!({ "locks": null, "next_cursor": null }),
    ] {
        let asking =
            world.start(|locks| async move { locks.list(listing("", Some("b"), 9)).await });
        server.sees("GET /v1/locks").await.reply(200, body).await;
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    }
    let asking = world.start(|locks| async move { locks.list(listing("", None, 9)).await });
    server.sees("GET /v1/locks").await.refuse(501, "unsupported").await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Unsupported, Applied::No);
}

/// Revokes, and every answer to one.
#[tokio::test]
async fn a_revoke_is_answered() {
    let (mut server, world) = once().await;
    let floor = TokenFloor::new(9).unwrap();
    let yes = json!({ "revoked": true, "previous_token": 7, "new_token_floor": 9 });
    let free = json!({ "revoked": false, "previous_token": null, "new_token_floor": 9 });
    let mut other = problem(409, "token-mismatch");
    other["current_token"] = json!(8);
    let mut none = problem(409, "token-mismatch");
    none["current_token"] = json!(null);
    for (expected, status, body, outcome) in [
        (None, 200, yes, LockOutcome::Revoked { previous: token(7), floor }),
        (None, 200, free, LockOutcome::Free { floor }),
        (Some(7), 409, other, LockOutcome::Mismatch { current: Some(token(8)) }),
        (Some(7), 409, none, LockOutcome::Mismatch { current: None }),
    ] {
        let request = RevokeRequest {
            actor: OwnerId::new("operator").unwrap(),
            reason: Reason::new("its host is gone").unwrap(),
            expected: expected.map(token),
        };
        let asking = world.start(|locks| async move { locks.revoke(&key("k"), request).await });
        let asked = server.sees("POST /v1/locks/revoke").await;
        let mut sent = json!({
            "name": "k", "namespace": "default", "actor": "operator", "reason": "its host is gone",
        });
        if let Some(expected) = expected {
            sent["expected_token"] = json!(expected);
        }
        assert_eq!(asked.body, sent);
        asked.reply(status, body).await;
        assert_eq!(soon(asking).await.unwrap().unwrap(), outcome);
    }
    for body in [
        json!({ "revoked": true, "previous_token": null, "new_token_floor": 9 }),
        json!({ "revoked": false, "previous_token": 7, "new_token_floor": 9 }),
        json!({ "revoked": true, "previous_token": 7, "new_token_floor": 6 }),
    ] {
        let request = RevokeRequest {
            actor: OwnerId::new("operator").unwrap(),
            reason: Reason::new("gone").unwrap(),
            expected: None,
        };
        let asking = world.start(|locks| async move { locks.revoke(&key("k"), request).await });
        server.sees("POST /v1/locks/revoke").await.reply(200, body).await;
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    }
}

/// Floors.
#[tokio::test]
async fn a_floor_is_raised() {
    let (mut server, world) = once().await;
    let raise = || {
        world.start(|locks| async move {
            locks.raise_floor(&Namespace::default(), TokenFloor::new(100).unwrap()).await
        })
    };
    let asking = raise();
    let asked = server.sees("POST /v1/floor").await;
    assert_eq!(asked.body, json!({ "namespace": "default", "at_least": 100 }));
    let body = json!({ "namespace": "default", "token_floor": 120, "grants_ended": 3 });
    asked.reply(200, body).await;
    let raised = Raised { floor: TokenFloor::new(120).unwrap(), grants_ended: 3 };
    assert_eq!(soon(asking).await.unwrap().unwrap(), raised);
    for body in [
        json!({ "namespace": "default", "token_floor": 99, "grants_ended": 3 }),
        json!({ "namespace": "another", "token_floor": 120, "grants_ended": 3 }),
    ] {
        let asking = raise();
        server.sees("POST /v1/floor").await.reply(200, body).await;
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    }
}
