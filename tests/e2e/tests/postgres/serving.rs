//! Locks that live in the database and not in the server.

use dlock_e2e::{eventually, postgres::Postgres};
use serde_json::json;

use crate::{json, serve, token};

/// Every command through a server, one that is killed on the way: what it granted is there again,
/// and tokens rise.
#[test]
fn every_command_works_and_grants_outlive_a_server_that_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let postgres = Postgres::beside(place.path());
    let mut server = serve(place.path(), &postgres.options(place.path()));
    let taken = json(&server, &["acquire", "k", "--ttl", "1h", "--owner", "me"], 0);
    let (number, session) = (token(&taken).to_string(), taken["session_id"].as_str().unwrap());
    let proof = ["k", "--token", &number, "--session", session];
    json(&server, &[&["renew"], &proof[..]].concat(), 0);
    assert_eq!(json(&server, &["acquire", "k"], 75)["holder"]["owner"], "me");

    server.kill();
    server.restart();
    assert_eq!(json(&server, &["inspect", "k"], 0)["fencing_token"], token(&taken));
    json(&server, &[&["renew"], &proof[..]].concat(), 0);
    assert_eq!(json(&server, &["list"], 0)["locks"][0]["name"], "k");
    assert_eq!(json(&server, &[&["release"], &proof[..]].concat(), 0)["released"], true);
    json(&server, &["inspect", "k"], 1);

    let wish = json!({ "name": "k", "owner": "curl", "ttl_ms": 60_000 });
    let later = server.client().call("/v1/locks/acquire", &wish, 200);
    assert!(token(&later) > token(&taken), "{later} after {taken}");
    let broken = json(&server, &["revoke", "k", "--reason", "it hangs"], 0);
    assert_eq!(
        (&broken["revoked"], &broken["previous_token"]),
        (&json!(true), &json!(token(&later)))
    );
    let floor = (token(&later) + 1_000).to_string();
    json(&server, &["floor", "raise", &floor], 0);
    let last = server.client().call("/v1/locks/acquire", &wish, 200);
    assert!(token(&last) > token(&later) + 1_000, "{last}");
    json(&server, &["health"], 0);
    assert_eq!(server.terminate().code(), Some(0));
}

/// What one server grants another one renews and releases, also after the first was killed; tokens
/// rise whoever grants; and a waiter at one gets what was released through another.
#[test]
fn any_server_serves_what_another_granted() {
    let place = tempfile::tempdir().unwrap();
    let options = Postgres::beside(place.path()).options(place.path());
    let (mut one, two) = (serve(place.path(), &options), serve(place.path(), &options));
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    let first = one.client().call("/v1/locks/acquire", &wish, 200);
    let proof = json!({
        "name": "k", "session_id": first["session_id"], "fencing_token": first["fencing_token"],
    });
    let renewed = two.client().call("/v1/locks/renew", &proof, 200);
    assert_eq!(token(&renewed), token(&first));
    two.client().call("/v1/locks/acquire", &wish, 409);
    one.kill();
    two.client().call("/v1/locks/renew", &proof, 200);
    one.restart();

    let waiting = {
        let client = one.client();
        let patient = json!({ "name": "k", "owner": "b", "ttl_ms": 60_000, "max_wait_ms": 30_000 });
        std::thread::spawn(move || client.call("/v1/locks/acquire", &patient, 200))
    };
    eventually("it waits", || one.client().waiters("k") == 1);
    let released = two.client().call("/v1/locks/release", &proof, 200);
    assert_eq!(released["released"], true);
    assert!(token(&waiting.join().unwrap()) > token(&first));
}
