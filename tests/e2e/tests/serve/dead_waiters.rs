//! C01, C02: waiters whose session ends while they wait.

use dlock_e2e::{
    client::{Client, is_problem},
    eventually,
    raw::Raw,
};
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, naming, token, wanting};

const OPEN: &str = "/v1/sessions";
const KEEP: &str = "/v1/sessions/keepalive";
const LOOK: &str = "/v1/sessions/look";
const CLOSE: &str = "/v1/sessions/close";

fn open(client: &Client, ttl_ms: u64) -> Value {
    let opened = client.call(OPEN, &json!({"owner": "b", "ttl_ms": ttl_ms}), 201);
    json!({"session_id": opened["session_id"]})
}

/// A wait for `k` of this session.
fn wait(world: &World, session: &Value) -> Raw {
    let body = json!({"name": "k", "session_id": session["session_id"], "max_wait_ms": LONG});
    Raw::post(world.address(), ACQUIRE, &body)
}

#[track_caller]
fn assert_expired(waiter: &mut Raw) {
    let answer = waiter.answer().unwrap().expect(410);
    assert!(is_problem(&answer, "session-expired"), "{answer}");
    assert_eq!((&answer["retryable"], &answer["applied"]), (&json!(false), &json!("no")));
}

#[test]
fn c01_a_waiter_whose_session_ended_gets_an_error_and_the_next_one_the_lock() {
    let world = World::new();
    let client = world.client();
    let mut holder = acquire(&client, "k", "a", LONG);
    // Once the lease runs out because nobody keeps it any more; then it is closed, right before the
    // release, so that the server has no time to notice.
    for closed in [false, true, true, true] {
        let session = open(&client, if closed { LONG } else { 2_000 });
        let mut dead = wait(&world, &session);
        eventually("it waits", || client.waiters("k") == 1);
        let next = wanting("k", "next", LONG, LONG);
        let mut next = Raw::post(world.address(), ACQUIRE, &next);
        eventually("both wait", || client.waiters("k") == 2);
        if closed {
            assert_eq!(client.call(CLOSE, &session, 200)["closed"], true);
        } else {
            client.call(KEEP, &session, 200);
            eventually("its lease ends", || client.post(LOOK, &session).unwrap().status == 410);
        }
        assert_eq!(client.call(RELEASE, &naming(&holder), 200)["released"], true);
        assert_expired(&mut dead);
        let granted = next.answer().unwrap().expect(200);
        assert_eq!(granted["owner"], "next");
        assert!(token(&granted) > token(&holder));
        holder = granted;
    }
}

#[test]
fn c02_a_waiter_whose_session_ends_fails_while_the_lock_is_held() {
    let world = World::new();
    let client = world.client();
    let holder = acquire(&client, "k", "a", LONG);
    let session = open(&client, 1_000);
    let mut dead = wait(&world, &session);
    let bystander = wanting("k", "c", LONG, LONG);
    let mut bystander = Raw::post(world.address(), ACQUIRE, &bystander);
    eventually("both wait", || client.waiters("k") == 2);
    // Both the lock and the wait would last for an hour.
    assert_expired(&mut dead);
    assert_eq!(client.inspect("k").map(|info| token(&info)), Some(token(&holder)));
    eventually("its place is free", || client.waiters("k") == 1);
    client.call(RELEASE, &naming(&holder), 200);
    assert_eq!(bystander.answer().unwrap().expect(200)["owner"], "c");
}
