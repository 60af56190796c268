//! What a server does not start with.

use std::process::Command;

use dlock_e2e::{client::Client, dlock, unconfigured};
use dlock_servers::{EtcdCluster, Version};
use serde_json::json;

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
