//! `dlock serve` as its users meet it: a real server on a real socket, killed and stopped like one
//! (C3, and the cases that its tests name).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bodies;
mod dead_waiters;
mod expiry;
mod first_light;
mod forging;
mod full;
mod going_away;
mod input;
mod long_line;
mod names;
mod owners;
mod revoking;
mod sessions;
mod siege;
mod start;
mod stop;
mod too_late;
mod two_servers;
mod vanishing;

use std::{collections::BTreeMap, net::SocketAddr};

use dlock_e2e::{client::Client, server::Server};
use serde_json::{Value, json};
use tempfile::TempDir;

const ACQUIRE: &str = "/v1/locks/acquire";
const RENEW: &str = "/v1/locks/renew";
const RELEASE: &str = "/v1/locks/release";

/// A lifetime that no test outlives.
const LONG: u64 = 3_600_000;

/// A server with a store of its own.
struct World {
    // Dropped before the folder that it writes to.
    server: Server,
    place: TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(&[], &[])
    }

    /// With further options and variables.
    fn with(options: &[&str], variables: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        Self { server: Server::configured(place.path(), options, variables), place }
    }

    fn client(&self) -> Client {
        self.server.client()
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// `kill -9`, and the same server again.
    fn kill_and_restart(&mut self) {
        self.server.kill();
        self.server.restart();
    }
}

/// The body of an acquire for a private session.
fn wanting(name: &str, owner: &str, ttl_ms: u64, max_wait_ms: u64) -> Value {
    json!({"name": name, "owner": owner, "ttl_ms": ttl_ms, "max_wait_ms": max_wait_ms})
}

/// Acquires what is free, without waiting.
#[track_caller]
fn acquire(client: &Client, name: &str, owner: &str, ttl_ms: u64) -> Value {
    client.call(ACQUIRE, &wanting(name, owner, ttl_ms, 0), 200)
}

/// The body of a renew or release of what an acquire answered.
fn naming(grant: &Value) -> Value {
    json!({
        "name": grant["name"],
        "session_id": grant["session_id"],
        "fencing_token": grant["fencing_token"],
    })
}

#[track_caller]
fn token(body: &Value) -> u64 {
    body["fencing_token"].as_u64().unwrap()
}

/// Everything that is held in the default namespace: names and tokens.
fn all_held(client: &Client) -> BTreeMap<String, u64> {
    let mut held = BTreeMap::new();
    let mut path = "/v1/locks?limit=1000".to_owned();
    loop {
        let page = client.get(&path).unwrap().expect(200);
        for lock in page["locks"].as_array().unwrap() {
            held.insert(lock["name"].as_str().unwrap().to_owned(), token(lock));
        }
        let Some(cursor) = page["next_cursor"].as_str() else { return held };
        path = format!("/v1/locks?limit=1000&cursor={cursor}");
    }
}

/// Asserts that an object has exactly these fields.
#[track_caller]
fn assert_fields(body: &Value, fields: &[&str]) {
    let mut found: Vec<_> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let mut fields = fields.to_vec();
    found.sort_unstable();
    fields.sort_unstable();
    assert_eq!(found, fields, "{body}");
}

const GRANT: [&str; 7] =
    ["name", "namespace", "owner", "session_id", "fencing_token", "ttl_ms", "valid_ms"];
const INFO: [&str; 7] =
    ["name", "namespace", "owner", "fencing_token", "held_for_ms", "expires_in_ms", "waiter_count"];
