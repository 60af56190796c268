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
use tempfile::TempDir;

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

/// `test-etcd` with a folder for all that it keeps, and the address that it printed.
struct Program {
    child: Child,
    endpoint: String,
    folder: TempDir,
}

impl Program {
    fn start(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_test-etcd"));
        command.args(args).env("TMPDIR", folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let program = Self { child, endpoint: line.trim_end().to_owned(), folder };
        assert!(answers(&program.endpoint));
        assert_eq!(program.kept(), 1, "its data, or a place for it");
        program
    }

    fn kill_9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// How much is in its folder.
    fn kept(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }

    /// Waits until nothing answers, no process of it is left, and nothing of its data.
    fn gone(&self) {
        eventually("nothing answers", || !answers(&self.endpoint));
        eventually("no process of it is left", || processes_with(&self.endpoint).is_empty());
        eventually("its data is gone", || self.kept() == 0);
        let folder = self.folder.path().to_str().unwrap();
        eventually("its watchdog is gone", || processes_with(folder).is_empty());
    }
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
    let mut program = Program::start(&["3.4"]);
    program.kill_9();
    program.gone();
}

#[test]
fn old_etcd_is_gone_when_the_input_of_its_program_ends() {
    let mut program = Program::start(&["3.4"]);
    let mut input = program.child.stdin.take().unwrap();
    input.write_all(b"as long as this is open\n").unwrap();
    assert!(answers(&program.endpoint));
    drop(input);
    assert!(program.child.wait().unwrap().success());
    assert!(!answers(&program.endpoint) && program.kept() == 0, "all is gone before it ends");
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
    let mut program = Program::start(&["3.5", "in-a-container"]);
    let name = name_of(&program.endpoint);
    assert_eq!(containers_with(&name).lines().count(), 1);
    program.kill_9();
    eventually("no container of it is left", || containers_with(&name).is_empty());
    program.gone();
}
