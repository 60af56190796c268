//! Sessions: many locks under one lease, across a kill.

use dlock_e2e::client::is_problem;
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, assert_fields, naming, token};

const OPEN: &str = "/v1/sessions";
const KEEP: &str = "/v1/sessions/keepalive";
const LOOK: &str = "/v1/sessions/look";
const CLOSE: &str = "/v1/sessions/close";

fn held(grant: &Value) -> Value {
    json!({"name": grant["name"], "fencing_token": grant["fencing_token"]})
}

#[test]
fn a_session_is_kept_looked_at_and_closed_across_a_kill() {
    let mut world = World::new();
    let client = world.client();
    let opened = client.call(OPEN, &json!({"owner": "a", "ttl_ms": LONG}), 201);
    assert_fields(&opened, &["session_id", "owner", "ttl_ms", "valid_ms"]);
    let id = json!({"session_id": opened["session_id"]});
    let wants = |name: &str| json!({"name": name, "session_id": id["session_id"]});
    let one = client.call(ACQUIRE, &wants("one"), 200);
    let attempt = "000102030405060708090a0b0c0d0e0f";
    let mut with_attempt = wants("two");
    with_attempt["attempt_id"] = json!(attempt);
    let two = client.call(ACQUIRE, &with_attempt, 200);
    assert_eq!(one["session_id"], id["session_id"]);
    assert_eq!(one["owner"], "a");
    client.call(RELEASE, &naming(&one), 200);

    world.kill_and_restart();
    let looked = client.call(LOOK, &id, 200);
    assert_fields(&looked, &["session_id", "owner", "ttl_ms", "valid_ms", "grants"]);
    let expected = json!([{
        "name": "two", "namespace": "default", "fencing_token": token(&two), "attempt_id": attempt,
    }]);
    assert_eq!((&looked["owner"], &looked["grants"]), (&json!("a"), &expected));

    let mut keep = id.clone();
    keep["held"] = json!([held(&one), held(&two)]);
    let kept = client.call(KEEP, &keep, 200);
    assert_fields(&kept, &["session_id", "ttl_ms", "valid_ms", "lost"]);
    let lost = json!([{"name": "one", "namespace": "default", "fencing_token": token(&one)}]);
    assert_eq!(kept["lost"], lost, "exactly what is not there");
    client.call(RENEW, &naming(&two), 200);

    let bystander = acquire(&client, "three", "a", LONG);
    assert_eq!(client.call(CLOSE, &id, 200), json!({"closed": true}));
    assert_eq!(client.inspect("two"), None, "its locks end with it");
    world.kill_and_restart();
    assert_eq!(client.call(CLOSE, &id, 200), json!({"closed": false}));
    for (path, body) in [(KEEP, &id), (LOOK, &id), (ACQUIRE, &wants("two"))] {
        let gone = client.call(path, body, 410);
        assert!(is_problem(&gone, "session-expired"), "{path}: {gone}");
    }
    client.call(RENEW, &naming(&two), 410);
    assert!(token(&acquire(&client, "two", "b", LONG)) > token(&two));
    client.call(RENEW, &naming(&bystander), 200);
}

#[test]
fn a_session_that_is_not_kept_ends_with_all_its_locks() {
    let mut world = World::new();
    let client = world.client();
    let opened = client.call(OPEN, &json!({"owner": "a", "ttl_ms": 3_000}), 201);
    let id = json!({"session_id": opened["session_id"]});
    let grants = ["one", "two"].map(|name| {
        client.call(ACQUIRE, &json!({"name": name, "session_id": id["session_id"]}), 200)
    });
    world.kill_and_restart();
    for grant in &grants {
        let name = grant["name"].as_str().unwrap();
        let next = client.call(ACQUIRE, &crate::wanting(name, "b", LONG, 60_000), 200);
        assert!(token(&next) > token(grant));
    }
    client.call(KEEP, &id, 410);
}
