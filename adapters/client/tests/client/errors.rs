//! Every kind of problem, and the error that it becomes (C2, C3).

use dlock_domain::{Applied, ErrorKind, Invariant};
use dlock_ports::LockService;
use serde_json::json;

use crate::support::{assert_failed, key, named, once, problem, session, soon, token, wish};

#[tokio::test]
async fn every_problem_has_its_kind() {
    use Applied::{No, Unknown};
    use ErrorKind::*;
    let invalid = |field| InvalidArgument { field };
    let (mut server, world) = once().await;
    for (status, urn, more, kind, applied) in [
        (503, "contention", json!({ "applied": "unknown" }), Contention, Unknown),
        (503, "contention", json!({ "applied": "no" }), Contention, No),
        (503, "contention", json!({ "applied": null }), Contention, Unknown),
        (503, "contention", json!({ "applied": "perhaps" }), Contention, Unknown),
        (503, "not-leader", json!({ "applied": "unknown" }), NotLeader, Unknown),
        (503, "draining", json!({}), Draining, No),
        (410, "lock-lost", json!({}), LockLost, No),
        (410, "lock-lost", json!({ "applied": null }), LockLost, No),
        (410, "session-expired", json!({}), SessionExpired, No),
        (422, "invalid-argument", json!({ "field": "ttl_ms" }), invalid("ttl_ms"), No),
        (422, "invalid-argument", json!({ "field": "held[3].name" }), invalid("held"), No),
        (422, "invalid-argument", json!({ "field": "colour" }), invalid("request"), No),
        (422, "invalid-argument", json!({}), invalid("request"), No),
        (400, "malformed-body", json!({}), invalid("request"), No),
        (400, "malformed-query", json!({}), invalid("request"), No),
        (400, "malformed-host", json!({}), invalid("request"), No),
        (415, "unsupported-media-type", json!({}), invalid("request"), No),
        (
            429,
            "limit",
            json!({ "limit": "lock.max_waiters" }),
            Limit { limit: "lock.max_waiters" },
            No,
        ),
        (429, "limit", json!({ "limit": "moon.phase" }), Limit { limit: "server" }, No),
        (
            413,
            "body-too-large",
            json!({ "limit": "http.max_body" }),
            Limit { limit: "http.max_body" },
            No,
        ),
        (403, "denied", json!({}), Denied, No),
        (401, "denied", json!({}), Denied, No),
        (421, "misdirected", json!({}), Denied, No),
        (501, "unsupported", json!({}), Unsupported, No),
        (404, "not-found", json!({}), Unsupported, No),
        (405, "method-not-allowed", json!({}), Unsupported, No),
        (
            500,
            "invariant-violated",
            json!({ "invariant": "INV-04" }),
            InvariantViolated(Invariant::TokensRise),
            No,
        ),
        (
            500,
            "invariant-violated",
            json!({ "invariant": "INV-01" }),
            InvariantViolated(Invariant::OneGrantPerKey),
            No,
        ),
        (
            500,
            "invariant-violated",
            json!({ "invariant": "INV-99" }),
            InvariantViolated(Invariant::RecordsReadable),
            No,
        ),
        (500, "internal", json!({ "applied": "unknown" }), Contention, Unknown),
        (408, "request-timeout", json!({}), Contention, No),
        // A later server's: its status says what to do.
        (422, "unheard-of", json!({ "field": "name" }), invalid("name"), No),
        (403, "unheard-of", json!({}), Denied, No),
        (429, "unheard-of", json!({}), Limit { limit: "server" }, No),
        (501, "unheard-of", json!({}), Unsupported, No),
        (503, "unheard-of", json!({}), Contention, No),
        // Nobody knows what these mean: least of all are they a loss.
        (410, "unheard-of", json!({}), Contention, Unknown),
        (404, "lock-lost", json!({}), Contention, Unknown),
        (503, "lock-lost", json!({}), Contention, Unknown),
        (500, "session-expired", json!({}), Contention, Unknown),
        (404, "not-held", json!({}), Contention, Unknown),
        (409, "token-mismatch", json!({}), Contention, Unknown),
        (409, "not-granted", json!({}), Contention, Unknown),
    ] {
        let asking =
            world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
        let mut body = problem(status, urn);
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        server.sees("POST /v1/locks/renew").await.reply(status, body.clone()).await;
        let error = assert_failed(soon(asking).await.unwrap(), kind, applied);
        let ours = error.detail().ends_with("in words");
        assert!(ours || error.detail().contains(server.url.as_str()), "{body} {error}");
    }
}

/// What only reads changes nothing, whatever its failure says.
#[tokio::test]
async fn a_read_has_no_effect() {
    let (mut server, world) = once().await;
    let asking = world.start(|locks| async move { locks.inspect(&key("k")).await });
    let mut body = problem(503, "contention");
    body["applied"] = json!("unknown");
    server.sees("GET /v1/locks/inspect").await.reply(503, body).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
    let asking = world.start(|locks| async move { locks.inspect(&key("k")).await });
    server.sees("GET /v1/locks/inspect").await.swallow();
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::No);
}

/// A name that has no place in an error's kind stands in its words; what would move a cursor does
/// not (C33).
#[tokio::test]
async fn words_are_kept_and_harmless() {
    let (mut server, world) = once().await;
    let asking = world.acquire(named(wish(), 5));
    let mut body = problem(422, "invalid-argument");
    body["field"] = json!("colour");
    body["detail"] = json!("not \u{1b}[31mred\r\n");
    server.sees("POST /v1/locks/acquire").await.reply(422, body).await;
    let error = soon(asking).await.unwrap().unwrap_err();
    assert_eq!(error.detail(), "colour: not \u{fffd}[31mred\u{fffd}\u{fffd}");
}
