//! Several `dlock serve` on one etcd cluster, and on none.

use std::{
    fs::OpenOptions,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
};

use dlock_e2e::{
    client::Client,
    dlock,
    etcd::Etcd,
    eventually,
    server::{Server, serve},
    unconfigured,
};
use dlock_servers::{EtcdCluster, Version};
use serde_json::json;

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
    let options: Vec<&str> = etcd.options.iter().map(String::as_str).collect();
    let mut one = Server::start(place.path(), &options);
    let two = Server::start(place.path(), &options);
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
    let mut command = serve(place.path(), "127.0.0.1:0", &options);
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

/// The keys about certificates reach the client, both ways.
#[test]
fn old_etcd_knows_a_server_by_its_certificate() {
    let place = tempfile::tempdir().unwrap();
    let cluster = EtcdCluster::start_with_tls(Version::Old);
    let etcd = Etcd::at(place.path(), cluster.secure_endpoint());
    let own = cluster.identity("dlock");
    let mut file = OpenOptions::new().append(true).open(place.path().join("dlock.toml")).unwrap();
    writeln!(
        file,
        "etcd.tls.ca_file = '{}'\netcd.tls.cert_file = '{}'\netcd.tls.key_file = '{}'",
        cluster.authority().display(),
        own.certificate.display(),
        own.key.display()
    )
    .unwrap();
    let options: Vec<&str> = etcd.options.iter().map(String::as_str).collect();
    let server = Server::start(place.path(), &options);
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    server.client().call("/v1/locks/acquire", &wish, 200);
}

/// As operators of other stores are told: it is no use to wait.
#[test]
fn whoever_old_etcd_does_not_let_in_gets_77() {
    let place = tempfile::tempdir().unwrap();
    let cluster = EtcdCluster::start(Version::Old, 1);
    let endpoint = cluster.endpoint(0);
    let etcd = Client::new(endpoint.strip_prefix("http://").unwrap().parse().unwrap());
    for (path, body) in [
        ("/v3/auth/user/add", json!({ "name": "root", "password": "secret" })),
        ("/v3/auth/role/add", json!({ "name": "root" })),
        ("/v3/auth/user/grant", json!({ "user": "root", "role": "root" })),
        ("/v3/auth/enable", json!({})),
    ] {
        etcd.call(path, &body, 200);
    }
    let (file, password) = (place.path().join("dlock.toml"), place.path().join("password"));
    std::fs::write(&password, "hush").unwrap();
    let lines = format!(
        "lock.backend = 'etcd'\netcd.endpoints = '{}'\netcd.username = 'root'\n\
         etcd.password_file = '{}'\n",
        endpoint,
        password.display()
    );
    std::fs::write(&file, lines).unwrap();
    let mut command = Command::new(dlock());
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&file);
    let output = unconfigured(&mut command).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "{said}");
    assert!(said.contains("etcd.password_file") && !said.contains("hush"), "{said}");
}

/// What belongs together must be said together, and is found before anything starts.
#[test]
fn half_of_a_pair_is_bad_usage() {
    let place = tempfile::tempdir().unwrap();
    for (half, missing) in [
        ("etcd.username = 'me'", "etcd.password_file"),
        ("etcd.password_file = '/x'", "etcd.username"),
        ("etcd.tls.cert_file = '/x'", "etcd.tls.key_file"),
        ("etcd.endpoints = 'https://127.0.0.1:1'", "etcd.tls.ca_file"),
    ] {
        let file = place.path().join("dlock.toml");
        std::fs::write(&file, format!("lock.backend = 'etcd'\n{half}\n")).unwrap();
        for words in [&["config", "check"][..], &["serve"]] {
            let mut command = Command::new(dlock());
            command.args(words).arg("--config").arg(&file);
            let output = unconfigured(&mut command).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(64), "{half}: {said}");
            assert!(said.contains(missing), "{half}: {said}");
        }
    }
}
