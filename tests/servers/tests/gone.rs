//! Nothing of a cluster is left, however its test ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use dlock_servers::{EtcdCluster, Version};

/// Something that comes true, with an end.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}

fn answers(endpoint: &str) -> bool {
    let address: SocketAddr = endpoint.strip_prefix("http://").unwrap().parse().unwrap();
    TcpStream::connect(address).is_ok()
}

/// The processes whose command line has this in it.
fn processes_with(text: &str) -> Vec<String> {
    let numbers = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let lines = numbers.filter_map(|path| std::fs::read(path.join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

/// What `docker ps` shows under this name, whether it runs or not.
fn containers_with(text: &str) -> String {
    let mut command = Command::new("docker");
    command.args(["ps", "--all", "--quiet", "--filter", &format!("name={text}")]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// What `docker network ls` shows under this name.
fn networks_with(text: &str) -> String {
    let mut command = Command::new("docker");
    command.args(["network", "ls", "--quiet", "--filter", &format!("name={text}")]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// What the names of a cluster's containers and network begin with.
fn name_of(endpoint: &str) -> String {
    let address = endpoint.strip_prefix("http://").unwrap();
    format!("dlock-etcd-{}", address.replace(['.', ':'], "-"))
}

/// `test-etcd`, and the address that it printed.
fn test_etcd(args: &[&str]) -> (Child, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_test-etcd"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim_end().to_owned())
}

#[test]
fn old_etcd_is_gone_when_dropped() {
    let cluster = EtcdCluster::start(Version::Old, 3);
    let endpoints = cluster.endpoints();
    assert!(endpoints.iter().all(|endpoint| answers(endpoint)));
    drop(cluster);
    for endpoint in endpoints {
        assert!(!answers(&endpoint));
        assert_eq!(processes_with(&endpoint), Vec::<String>::new());
    }
}

#[test]
fn old_etcd_is_gone_after_a_panic_even_where_it_was_paused() {
    let mut endpoint = String::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut cluster = EtcdCluster::start(Version::Old, 1);
        endpoint = cluster.endpoint(0);
        cluster.pause(0);
        cluster.pause(0);
    }));
    assert!(panicked.is_err(), "what is paused cannot be paused");
    assert!(!answers(&endpoint));
    assert_eq!(processes_with(&endpoint), Vec::<String>::new());
}

#[test]
fn old_etcd_is_gone_after_kill_9_of_whoever_started_it() {
    let (mut child, endpoint) = test_etcd(&["3.4"]);
    let started = processes_with(&endpoint);
    let folder = started[0].split("--data-dir=").nth(1).unwrap().split("/m0").next().unwrap();
    assert!(std::path::Path::new(folder).exists());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("no process of it is left", || processes_with(&endpoint).is_empty());
    eventually("its data is gone", || !std::path::Path::new(folder).exists());
    eventually("its watchdog is gone", || processes_with(folder).is_empty());
}

#[test]
fn old_etcd_is_gone_when_the_input_of_its_program_ends() {
    let (mut child, endpoint) = test_etcd(&["3.4"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"as long as this is open\n").unwrap();
    assert!(answers(&endpoint));
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(!answers(&endpoint));
}

#[test]
fn new_etcd_in_a_container_is_gone_when_dropped() {
    let cluster = EtcdCluster::start_in_containers(Version::New, 3, &[]);
    let endpoints = cluster.endpoints();
    let name = name_of(&endpoints[0]);
    assert_eq!(containers_with(&name).lines().count(), 3);
    assert_eq!(networks_with(&name).lines().count(), 1);
    drop(cluster);
    assert_eq!((containers_with(&name), networks_with(&name)), (String::new(), String::new()));
    assert!(endpoints.iter().all(|endpoint| !answers(endpoint)));
}

#[test]
fn new_etcd_in_a_container_is_gone_after_kill_9_of_whoever_started_it() {
    let (mut child, endpoint) = test_etcd(&["3.5", "in-a-container"]);
    let name = name_of(&endpoint);
    assert_eq!(containers_with(&name).lines().count(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("no container of it is left", || containers_with(&name).is_empty());
    eventually("nothing answers", || !answers(&endpoint));
}
