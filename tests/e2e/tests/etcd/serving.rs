//! Locks that live in the cluster and not in the server.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Stdio},
};

use dlock_e2e::{client::Client, etcd::Etcd, eventually, server};
use serde_json::json;

use crate::serve;

/// Dropped, it is killed.
struct Alone(Child);

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What one server grants another one renews and releases, also after the first was killed; tokens
/// rise whoever grants; and a waiter at one is woken by a release through another.
#[test]
fn any_server_serves_what_another_granted() {
    let place = tempfile::tempdir().unwrap();
    let etcd = Etcd::below(place.path());
    let (mut one, two) = (serve(place.path(), &etcd, ""), serve(place.path(), &etcd, ""));
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    let first = one.client().call("/v1/locks/acquire", &wish, 200);
    let token = |grant: &serde_json::Value| grant["fencing_token"].as_u64().unwrap();
    let proof = json!({
        "name": "k", "session_id": first["session_id"], "fencing_token": first["fencing_token"],
    });
    let renewed = two.client().call("/v1/locks/renew", &proof, 200);
    assert_eq!(token(&renewed), token(&first));
    two.client().call("/v1/locks/acquire", &wish, 409);
    one.kill();
    two.client().call("/v1/locks/renew", &proof, 200);
    one.restart();
    one.client().call("/v1/locks/renew", &proof, 200);

    let waiting = {
        let client = one.client();
        let patient = json!({ "name": "k", "owner": "b", "ttl_ms": 60_000, "max_wait_ms": 30_000 });
        std::thread::spawn(move || client.call("/v1/locks/acquire", &patient, 200))
    };
    eventually("it waits", || {
        let seen = one.client().get("/v1/locks/inspect?name=k").unwrap();
        seen.body["waiter_count"] == 1
    });
    let released = two.client().call("/v1/locks/release", &proof, 200);
    assert_eq!(released["released"], true);
    assert!(token(&waiting.join().unwrap()) > token(&first));
}

/// No member answers: the server lives, is not ready, and grants nothing.
#[test]
fn without_a_cluster_a_server_lives_and_is_not_ready() {
    let place = tempfile::tempdir().unwrap();
    let options =
        ["--backend", "etcd", "--etcd-endpoints", "http://127.0.0.1:1,http://127.0.0.1:2"];
    let options = options.map(str::to_owned);
    let mut command = server::serve(place.path(), "127.0.0.1:0", &options);
    let mut alone = Alone(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut greeting = String::new();
    BufReader::new(alone.0.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
    let address = greeting.trim().rsplit_once("http://").unwrap().1.parse().unwrap();
    let client = Client::new(address);
    assert_eq!(client.get("/livez").unwrap().status, 200);
    assert_eq!(client.get("/readyz").unwrap().status, 503);
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    let refused = client.call("/v1/locks/acquire", &wish, 503);
    assert_eq!((&refused["retryable"], &refused["applied"]), (&json!(true), &json!("no")));
}
