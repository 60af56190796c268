//! Who may touch what: a token's session, whatever its owner is called.

use dlock_e2e::client::is_problem;
use serde_json::json;

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, naming, token, wanting};

#[test]
fn c22_a_holder_that_expired_touches_nothing_of_its_successor() {
    let mut world = World::new();
    let client = world.client();
    let first = acquire(&client, "k", "a", 1_000);
    let second = client.call(ACQUIRE, &wanting("k", "b", LONG, 60_000), 200);
    assert!(token(&second) > token(&first));
    // Once with a server that remembers whose token it was, once with one that must look.
    for _ in 0..2 {
        let released = client.call(RELEASE, &naming(&first), 200);
        assert_eq!(released, json!({"released": false, "current": "other"}));
        let lost = client.call(RENEW, &naming(&first), 410);
        assert!(is_problem(&lost, "lock-lost"), "{lost}");
        assert_eq!((&lost["retryable"], &lost["applied"]), (&json!(false), &json!("no")));
        let mut stolen = naming(&second);
        stolen["session_id"] = first["session_id"].clone();
        for path in [RELEASE, RENEW] {
            let denied = client.call(path, &stolen, 403);
            assert!(is_problem(&denied, "denied"), "{denied}");
        }
        assert_eq!(client.inspect("k").map(|info| token(&info)), Some(token(&second)));
        assert_eq!(token(&client.call(RENEW, &naming(&second), 200)), token(&second));
        world.kill_and_restart();
    }
}

#[test]
fn c24_owners_are_labels_and_never_authority() {
    let mut world = World::new();
    let client = world.client();
    let one = acquire(&client, "k", "worker-1", LONG);
    for owner in ["worker-1", "worker-10", "worker"] {
        let refused = client.call(ACQUIRE, &wanting("k", owner, LONG, 0), 409);
        assert_eq!(refused["holder"]["owner"], "worker-1", "to {owner}");
    }
    // The same label twice, and one that begins like it, each with a lock of its own.
    let same = acquire(&client, "same", "worker-1", LONG);
    let longer = acquire(&client, "longer", "worker-10", LONG);
    assert_ne!(one["session_id"], same["session_id"]);
    for _ in 0..2 {
        for stranger in [&same, &longer] {
            let mut theirs = naming(&one);
            theirs["session_id"] = stranger["session_id"].clone();
            client.call(RENEW, &theirs, 403);
            client.call(RELEASE, &theirs, 403);
        }
        world.kill_and_restart();
    }
    for grant in [&one, &same, &longer] {
        assert_eq!(client.call(RELEASE, &naming(grant), 200)["released"], true);
    }
}
