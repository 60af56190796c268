//! Clients that are not there when their answer comes.

use dlock_e2e::{eventually, raw::Raw};
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, naming, token, wanting};

const ATTEMPT: &str = "0f0e0d0c0b0a09080706050403020100";

fn repeatable(name: &str, max_wait_ms: u64) -> Value {
    let mut body = wanting(name, "b", LONG, max_wait_ms);
    body["attempt_id"] = json!(ATTEMPT);
    body
}

#[test]
fn c20_a_repeat_finds_the_grant_whose_reply_was_swallowed() {
    let mut world = World::new();
    let client = world.client();
    let swallowed = Raw::post(world.address(), ACQUIRE, &repeatable("k", 0));
    eventually("it is granted", || client.inspect("k").is_some());
    drop(swallowed);
    let held = token(&client.inspect("k").unwrap());
    let repeated = client.call(ACQUIRE, &repeatable("k", 0), 200);
    assert_eq!(token(&repeated), held);

    world.kill_and_restart();
    let again = client.call(ACQUIRE, &repeatable("k", 0), 200);
    assert_eq!(naming(&again), naming(&repeated), "one grant, also for a server that forgot it");
    assert!(again["valid_ms"].as_u64().unwrap() <= repeated["valid_ms"].as_u64().unwrap());
    let released = client.call(RELEASE, &naming(&again), 200);
    assert_eq!(released, json!({"released": true, "current": "none"}));
    // Afterwards the id is used up, on the server that saw its end.
    assert_eq!(client.call(ACQUIRE, &repeatable("k", 0), 422)["field"], "attempt_id");
}

#[test]
fn c20_a_kill_before_the_reply_leaves_one_grant_or_none() {
    let mut world = World::new();
    let client = world.client();
    for round in 0..10 {
        let name = format!("k{round}");
        let mut body = wanting(&name, "b", LONG, 0);
        body["attempt_id"] = json!(format!("{round:032x}"));
        let cut = Raw::post(world.address(), ACQUIRE, &body);
        world.kill_and_restart();
        drop(cut);
        let seen = client.inspect(&name);
        let repeated = client.call(ACQUIRE, &body, 200);
        if let Some(seen) = seen {
            assert_eq!(token(&seen), token(&repeated), "its own grant");
        }
        assert_eq!(client.inspect(&name).map(|info| token(&info)), Some(token(&repeated)));
        assert_eq!(client.call(RELEASE, &naming(&repeated), 200)["released"], true);
    }
}

#[test]
fn a_waiter_that_hangs_up_is_granted_nothing() {
    let world = World::new();
    let client = world.client();
    for body in [wanting("k", "b", LONG, LONG), repeatable("k", LONG)] {
        let holder = acquire(&client, "k", "a", LONG);
        let waiter = Raw::post(world.address(), ACQUIRE, &body);
        eventually("it waits", || client.waiters("k") == 1);
        drop(waiter);
        eventually("it is gone", || client.waiters("k") == 0);
        client.call(RELEASE, &naming(&holder), 200);
        assert_eq!(client.inspect("k"), None);
        let next = acquire(&client, "k", "c", LONG);
        client.call(RELEASE, &naming(&next), 200);
    }
}

#[test]
fn c03_the_next_waiter_is_granted_when_the_head_hangs_up_in_that_instant() {
    let world = World::new();
    let client = world.client();
    let mut holder = acquire(&client, "k", "a", LONG);
    for _ in 0..10 {
        // Where the head's answer was on its way already, its grant ends with its lease (C07).
        let head = Raw::post(world.address(), ACQUIRE, &wanting("k", "head", 1_000, LONG));
        eventually("the head waits", || client.waiters("k") == 1);
        let mut next = Raw::post(world.address(), ACQUIRE, &wanting("k", "next", LONG, LONG));
        eventually("both wait", || client.waiters("k") == 2);
        let releasing = std::thread::spawn({
            let (client, body) = (client.clone(), naming(&holder));
            move || client.call(RELEASE, &body, 200)
        });
        drop(head);
        assert_eq!(releasing.join().unwrap()["released"], true);
        let granted = next.answer().unwrap().expect(200);
        assert_eq!(granted["owner"], "next");
        assert!(token(&granted) > token(&holder));
        holder = granted;
    }
}

#[test]
fn a_waiter_with_an_attempt_of_its_own_finds_what_it_was_granted() {
    let mut world = World::new();
    let client = world.client();
    let holder = acquire(&client, "k", "a", LONG);
    let waiter = Raw::post(world.address(), ACQUIRE, &repeatable("k", LONG));
    eventually("it waits", || client.waiters("k") == 1);
    client.call(RELEASE, &naming(&holder), 200);
    eventually("it is granted", || client.inspect("k").is_some());
    drop(waiter);
    let held = token(&client.inspect("k").unwrap());
    client.call(ACQUIRE, &wanting("k", "c", LONG, 0), 409);
    world.kill_and_restart();
    let repeated = client.call(ACQUIRE, &repeatable("k", 0), 200);
    assert_eq!((token(&repeated), &repeated["owner"]), (held, &json!("b")));
}
