//! The first sequence anybody tries, with `kill -9` in the middle.

use dlock_e2e::{client::is_problem, load::Clock};
use serde_json::json;

use crate::{
    ACQUIRE, GRANT, INFO, LONG, RELEASE, RENEW, World, acquire, assert_fields, naming, token,
    wanting,
};

#[test]
fn an_acquire_is_granted_and_a_second_one_is_told_who_has_it() {
    let world = World::new();
    let (client, clock) = (world.client(), Clock::new());
    assert_eq!(client.inspect("nightly"), None);
    let sent = clock.now().0;
    let grant = acquire(&client, "nightly", "a", 10_000);
    let answered = clock.now().0;
    assert_fields(&grant, &GRANT);
    assert_eq!(
        (&grant["name"], &grant["namespace"], &grant["owner"], &grant["ttl_ms"]),
        (&json!("nightly"), &json!("default"), &json!("a"), &json!(10_000))
    );
    assert!(token(&grant) >= 1);
    assert_eq!(grant["session_id"].as_str().unwrap().len(), 32);
    // INV-03: the lease was set before the answer came, and the margin of max(50 ms, ttl / 50) is
    // off already.
    let deadline = sent + grant["valid_ms"].as_u64().unwrap() * 1_000_000;
    assert!(sent < deadline && deadline <= answered + 9_800_000_000, "{grant}");

    let refused = client.call(ACQUIRE, &wanting("nightly", "b", 10_000, 0), 409);
    assert!(is_problem(&refused, "not-granted"), "{refused}");
    assert_eq!((&refused["status"], &refused["retryable"]), (&json!(409), &json!(false)));
    let holder = &refused["holder"];
    assert_fields(holder, &INFO);
    assert_eq!((&holder["owner"], token(holder)), (&json!("a"), token(&grant)));
    assert!((1..=10_000).contains(&holder["expires_in_ms"].as_u64().unwrap()), "{holder}");
    let looked = client.inspect("nightly").unwrap();
    assert_eq!((&looked["owner"], token(&looked)), (&json!("a"), token(&grant)));

    let released = client.call(RELEASE, &naming(&grant), 200);
    assert_eq!(released, json!({"released": true, "current": "none"}));
    assert!(token(&acquire(&client, "nightly", "b", 10_000)) > token(&grant));
}

#[test]
fn what_the_description_shows_as_an_acquire_is_granted() {
    let world = World::new();
    let client = world.client();
    let described = client.get("/openapi.json").unwrap().expect(200);
    let example = described["paths"][ACQUIRE]["post"]["requestBody"]["content"]["application/json"]
        ["example"]
        .clone();
    let grant = client.call(ACQUIRE, &example, 200);
    assert_eq!((&grant["name"], &grant["owner"]), (&example["name"], &example["owner"]));
}

#[test]
fn a_live_lock_survives_kill_9_and_its_holder_goes_on() {
    let mut world = World::new();
    let client = world.client();
    let grant = acquire(&client, "nightly", "a", LONG);
    let other = acquire(&client, "other", "a", LONG);
    client.call(RELEASE, &naming(&other), 200);

    world.kill_and_restart();
    let refused = client.call(ACQUIRE, &wanting("nightly", "b", LONG, 0), 409);
    assert_eq!(token(&refused["holder"]), token(&grant));
    assert_eq!(refused["holder"]["owner"], "a");
    assert_eq!(client.inspect("other"), None, "a release survives, too");
    let renewed = client.call(RENEW, &naming(&grant), 200);
    assert_fields(&renewed, &GRANT);
    assert_eq!(naming(&renewed), naming(&grant));

    world.kill_and_restart();
    let released = client.call(RELEASE, &naming(&grant), 200);
    assert_eq!(released, json!({"released": true, "current": "none"}));
    let again = client.call(RELEASE, &naming(&grant), 200);
    assert_eq!(again, json!({"released": false, "current": "none"}));
    client.call(RENEW, &naming(&grant), 410);

    world.kill_and_restart();
    for (name, before) in [("nightly", &grant), ("other", &other)] {
        assert!(token(&acquire(&client, name, "b", LONG)) > token(before), "tokens only grow");
    }
}

#[test]
fn a_lock_whose_server_was_killed_is_held_until_it_expires() {
    let mut world = World::new();
    let (client, clock) = (world.client(), Clock::new());
    let sent = clock.now().0;
    let grant = acquire(&client, "nightly", "a", 2_000);
    let deadline = sent + grant["valid_ms"].as_u64().unwrap() * 1_000_000;
    world.kill_and_restart();
    let next = client.call(ACQUIRE, &wanting("nightly", "b", LONG, 60_000), 200);
    let granted = clock.now().0;
    assert!(granted > deadline, "granted {} ns early", deadline - granted);
    assert!(token(&next) > token(&grant));
}

#[test]
fn tokens_rise_from_kill_to_kill() {
    let mut world = World::new();
    let mut last = 0;
    for _ in 0..5 {
        let grant = acquire(&world.client(), "nightly", "a", LONG);
        assert!(token(&grant) > last);
        last = token(&grant);
        world.client().call(RELEASE, &naming(&grant), 200);
        world.kill_and_restart();
    }
}
