//! Answers that never came: what is repeated, and what is said of it (C20, INV-07).

use dlock_domain::{Applied, AttemptId, ErrorKind, LockOutcome, OwnerId, Reason, TokenFloor};
use dlock_ports::{Current, LockService, Released, RevokeRequest, SessionRef};
use serde_json::{Value, json};

use crate::support::{
    World, alone, assert_failed, got, grant, key, named, not_granted, refused, session, soon,
    token, wish,
};

fn released(released: bool, current: &str) -> Value {
    json!({ "released": released, "current": current })
}

async fn repeats(world: &World) {
    world.clock.leap().await;
}

/// C20: granted, the reply swallowed. The client repeats the attempt, under the id that the caller
/// chose or one of its own, and gets the same grant.
#[tokio::test]
async fn c20_a_swallowed_grant_is_asked_for_again() {
    let (mut server, world) = alone().await;
    for request in [wish(), named(wish(), 5)] {
        let attempt = request.attempt;
        let asking = world.acquire(request);
        let first = server.sees("POST /v1/locks/acquire").await;
        let body = first.body.clone();
        first.swallow();
        repeats(&world).await;
        let second = server.sees("POST /v1/locks/acquire").await;
        assert_eq!(second.body, body);
        let sent = AttemptId::parse(second.text("attempt_id")).unwrap();
        assert_eq!(attempt.unwrap_or(sent), sent);
        second.reply(200, grant(session())).await;
        assert_eq!(got(soon(asking).await.unwrap()).token, token(7));
    }
    server.is_quiet();
}

/// A connection that the server closes just as it is used again is like any other lost reply.
#[tokio::test]
async fn a_stale_connection_costs_a_repeat() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(wish());
    let first = server.sees("POST /v1/locks/acquire").await;
    let again = tokio::spawn(first.reply_and_listen(200, grant(session())));
    got(soon(asking).await.unwrap());
    let asking =
        world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
    let stale = soon(again).await.unwrap();
    assert_eq!(stale.call, "POST /v1/locks/renew");
    stale.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/renew").await.reply(200, grant(session())).await;
    assert_eq!(soon(asking).await.unwrap().unwrap().token, token(7));
}

/// "Not granted" after a lost reply would be a guess: the attempt is settled before it is said.
#[tokio::test]
async fn inv09_not_granted_means_settled() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(wish());
    let first = server.sees("POST /v1/locks/acquire").await;
    let attempt = first.text("attempt_id").to_owned();
    first.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/acquire").await.reply(409, not_granted()).await;
    let forget = server.sees("POST /v1/locks/release").await;
    assert_eq!(forget.text("attempt_id"), attempt);
    assert!(forget.body.get("fencing_token").is_none());
    assert!(!asking.is_finished());
    forget.reply(200, released(true, "none")).await;
    assert_eq!(refused(soon(asking).await.unwrap()).unwrap().token, token(3));
}

/// Trap 13: who chose the attempt's id may have repeated it elsewhere, so it is not settled behind
/// their back, and the answer is unknown.
#[tokio::test]
async fn inv07_a_repeatable_attempt_is_unknown_and_not_refused() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(named(wish(), 5));
    server.sees("POST /v1/locks/acquire").await.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/acquire").await.reply(409, not_granted()).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    world.settled().await;
}

/// An outcome that stays unknown is said to be, also when the last try failed for sure; and an
/// attempt that nobody can repeat is settled.
#[tokio::test]
async fn what_stays_unknown_is_said_to_be() {
    let (mut server, world) = alone().await;
    let asking = world.acquire(wish());
    let first = server.sees("POST /v1/locks/acquire").await;
    let attempt = first.text("attempt_id").to_owned();
    first.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/acquire").await.refuse(429, "limit").await;
    let limit = ErrorKind::Limit { limit: "server" };
    assert_failed(soon(asking).await.unwrap(), limit, Applied::Unknown);
    let forget = server.sees("POST /v1/locks/release").await;
    assert_eq!(forget.text("attempt_id"), attempt);
    forget.reply(200, released(false, "other")).await;
    world.settled().await;
}

/// A release that is not sure to have failed is no loss: neither is it reported as one, nor as
/// released. Whoever repeats it knows the rest.
#[tokio::test]
async fn inv07_lost_and_unknown_are_different_answers() {
    let (mut server, world) = alone().await;
    let release =
        || world.start(|locks| async move { locks.release(&key("k"), token(7), &session()).await });
    for current in ["none", "other", "same"] {
        let asking = release();
        server.sees("POST /v1/locks/release").await.swallow();
        repeats(&world).await;
        server.sees("POST /v1/locks/release").await.reply(200, released(false, current)).await;
        assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);
    }
    let asking = release();
    server.sees("POST /v1/locks/release").await.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/release").await.reply(200, released(true, "none")).await;
    let yes = Released { released: true, current: Current::None };
    assert_eq!(soon(asking).await.unwrap().unwrap(), yes);

    // Certain: the first answer, or the first after a try that was never sent or had no effect.
    for failed_before in [false, true] {
        let asking = release();
        if failed_before {
            server.sees("POST /v1/locks/release").await.refuse(503, "contention").await;
            repeats(&world).await;
        }
        server.sees("POST /v1/locks/release").await.reply(200, released(false, "other")).await;
        let no = Released { released: false, current: Current::Other };
        assert_eq!(soon(asking).await.unwrap().unwrap(), no);
    }
}

/// The same for closing, and for a revoke that expected another grant.
#[tokio::test]
async fn inv07_nothing_done_is_not_handed_on_after_a_lost_reply() {
    let (mut server, world) = alone().await;
    let asking = world.start(|locks| async move { locks.close_session(&session()).await });
    server.sees("POST /v1/sessions/close").await.swallow();
    repeats(&world).await;
    server.sees("POST /v1/sessions/close").await.reply(200, json!({ "closed": false })).await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);

    let request = RevokeRequest {
        actor: OwnerId::new("operator").unwrap(),
        reason: Reason::new("gone").unwrap(),
        expected: Some(token(7)),
    };
    let again = request.clone();
    let asking = world.start(|locks| async move { locks.revoke(&key("k"), request).await });
    server.sees("POST /v1/locks/revoke").await.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/revoke").await.refuse(409, "token-mismatch").await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::Contention, Applied::Unknown);

    // Free is what was wanted.
    let asking = world.start(|locks| async move { locks.revoke(&key("k"), again).await });
    server.sees("POST /v1/locks/revoke").await.swallow();
    repeats(&world).await;
    let free = json!({ "revoked": false, "previous_token": null, "new_token_floor": 9 });
    server.sees("POST /v1/locks/revoke").await.reply(200, free).await;
    let floor = TokenFloor::new(9).unwrap();
    assert_eq!(soon(asking).await.unwrap().unwrap(), LockOutcome::Free { floor });
}

/// Loss is certain whatever came before it; a forgotten attempt is settled whatever it held.
#[tokio::test]
async fn what_is_certain_stays_certain() {
    let (mut server, world) = alone().await;
    let asking =
        world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
    server.sees("POST /v1/locks/renew").await.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/renew").await.refuse(410, "lock-lost").await;
    assert_failed(soon(asking).await.unwrap(), ErrorKind::LockLost, Applied::No);

    let asking = world.start(|locks| async move {
        let session = SessionRef::Id(session());
        locks.forget(&key("k"), &session, AttemptId::from_bits(5)).await
    });
    server.sees("POST /v1/locks/release").await.swallow();
    repeats(&world).await;
    server.sees("POST /v1/locks/release").await.reply(200, released(false, "unknown")).await;
    let settled = Released { released: false, current: Current::Unknown };
    assert_eq!(soon(asking).await.unwrap().unwrap(), settled);
}

/// C13: failures that may pass are not loss.
#[tokio::test]
async fn c13_a_renewal_gets_through_in_the_end() {
    let (mut server, world) = alone().await;
    let asking =
        world.start(|locks| async move { locks.renew(&key("k"), token(7), &session()).await });
    for _ in 0..2 {
        server.sees("POST /v1/locks/renew").await.refuse(503, "contention").await;
        repeats(&world).await;
    }
    server.sees("POST /v1/locks/renew").await.reply(200, grant(session())).await;
    assert_eq!(soon(asking).await.unwrap().unwrap().token, token(7));
}
