//! C25: breaking a lock.

use dlock_e2e::{client::is_problem, eventually, raw::Raw};
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, assert_fields, naming, token, wanting};

const REVOKE: &str = "/v1/locks/revoke";

fn revoking(name: &str, expected: Option<u64>) -> Value {
    json!({"name": name, "actor": "ops", "reason": "a test", "expected_token": expected})
}

#[test]
fn c25_revoking_with_the_wrong_token_twice_and_what_is_free() {
    let mut world = World::new();
    let client = world.client();
    let grant = acquire(&client, "k", "a", LONG);
    for wrong in [token(&grant) + 1, 9_007_199_254_740_991] {
        let refused = client.call(REVOKE, &revoking("k", Some(wrong)), 409);
        assert!(is_problem(&refused, "token-mismatch"), "{refused}");
        assert_eq!(
            (&refused["current_token"], &refused["applied"]),
            (&grant["fencing_token"], &json!("no"))
        );
        client.call(RENEW, &naming(&grant), 200);
    }

    let revoked = client.call(REVOKE, &revoking("k", Some(token(&grant))), 200);
    assert_fields(&revoked, &["revoked", "previous_token", "new_token_floor"]);
    assert_eq!(
        (&revoked["revoked"], &revoked["previous_token"]),
        (&json!(true), &grant["fencing_token"])
    );
    let floor = revoked["new_token_floor"].as_u64().unwrap();
    assert!(floor >= token(&grant));
    client.call(RENEW, &naming(&grant), 410);
    let released = client.call(RELEASE, &naming(&grant), 200);
    assert_eq!(released, json!({"released": false, "current": "none"}));

    // A second time, also with the token that was right before, and where nothing ever was.
    let mut floors = vec![floor];
    for (name, restarted) in [("k", false), ("k", true), ("never", false)] {
        if restarted {
            world.kill_and_restart();
        }
        let free = client.call(REVOKE, &revoking(name, None), 200);
        assert_eq!((&free["revoked"], &free["previous_token"]), (&json!(false), &Value::Null));
        floors.push(free["new_token_floor"].as_u64().unwrap());
    }
    assert!(
        floors[0] < floors[1] && floors[1] < floors[2],
        "the floor of a free lock is raised, too: {floors:?}"
    );
    world.kill_and_restart();
    assert!(token(&acquire(&client, "k", "b", LONG)) > floors[2]);
    assert!(token(&acquire(&client, "never", "b", LONG)) > floors[3]);
}

#[test]
fn a_revoked_lock_goes_to_who_waits_for_it() {
    let world = World::new();
    let client = world.client();
    let grant = acquire(&client, "k", "a", LONG);
    let mut waiter = Raw::post(world.address(), ACQUIRE, &wanting("k", "b", LONG, LONG));
    eventually("it waits", || client.waiters("k") == 1);
    let revoked = client.call(REVOKE, &revoking("k", None), 200);
    let next = waiter.answer().unwrap().expect(200);
    assert!(token(&next) > revoked["new_token_floor"].as_u64().unwrap());
    client.call(RENEW, &naming(&grant), 410);
    client.call(RENEW, &naming(&next), 200);
}
