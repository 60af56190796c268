//! Nothing of a server is left, however its test ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::{
    fs::Permissions,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use dlock_servers::{EtcdCluster, PostgresServer, PostgresVersion, Version};
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

/// The address in an address of either kind.
fn address_of(endpoint: &str) -> &str {
    let (_, rest) = endpoint.split_once("://").unwrap();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
    rest.split('/').next().unwrap()
}

fn answers(endpoint: &str) -> bool {
    let address: SocketAddr = address_of(endpoint).parse().unwrap();
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

/// What the names of a server's containers and network begin with.
fn name_of(endpoint: &str) -> String {
    let server = if endpoint.starts_with("http") { "etcd" } else { "postgres" };
    format!("dlock-{server}-{}", address_of(endpoint).replace(['.', ':'], "-"))
}

/// The memory segments that the system keeps for the servers of this machine.
fn segments() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    let ids = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    ids.map(str::to_owned).collect()
}

/// The memory segment of the server that keeps all in this folder.
fn segment_in(folder: &Path) -> String {
    let lock = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned()
}

/// A program that runs servers, with a folder for all that they keep, and the addresses that it
/// printed.
struct Program {
    child: Child,
    endpoint: String,
    further: Option<String>,
    folder: TempDir,
}

impl Program {
    fn etcd(args: &[&str]) -> Self {
        Self::start(env!("CARGO_BIN_EXE_test-etcd"), args)
    }

    fn postgres(args: &[&str]) -> Self {
        Self::start(env!("CARGO_BIN_EXE_test-postgres"), args)
    }

    fn start(program: &str, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Its servers may run as somebody else.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        let mut command = Command::new(program);
        command.args(args).env("TMPDIR", folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().map(str::to_owned);
        let (endpoint, further) = (words.next().unwrap(), words.next());
        let program = Self { child, endpoint, further, folder };
        assert!(program.endpoints().all(answers));
        assert_eq!(program.kept(), program.endpoints().count(), "their data, or a place for them");
        program
    }

    fn endpoints(&self) -> impl Iterator<Item = &str> {
        [&self.endpoint].into_iter().chain(&self.further).map(String::as_str)
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
        eventually("nothing answers", || !self.endpoints().any(answers));
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
    let mut program = Program::etcd(&["3.4"]);
    program.kill_9();
    program.gone();
}

#[test]
fn old_etcd_is_gone_when_the_input_of_its_program_ends() {
    let mut program = Program::etcd(&["3.4"]);
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
    let mut program = Program::etcd(&["3.5", "in-a-container"]);
    let name = name_of(&program.endpoint);
    assert_eq!(containers_with(&name).lines().count(), 1);
    program.kill_9();
    eventually("no container of it is left", || containers_with(&name).is_empty());
    program.gone();
}

#[test]
fn old_postgres_is_gone_after_a_panic_even_where_it_was_paused() {
    let (mut url, mut folder, mut segment) = (String::new(), String::new(), String::new());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut server = PostgresServer::start(PostgresVersion::Old);
        url = server.url("postgres");
        folder = server.folder().display().to_string();
        segment = segment_in(server.folder());
        assert!(segments().contains(&segment) && processes_with(&folder).len() > 1);
        server.pause();
        server.pause();
    }));
    assert!(panicked.is_err(), "what is paused cannot be paused");
    assert!(!answers(&url) && !Path::new(&folder).exists());
    assert_eq!(processes_with(&folder), Vec::<String>::new());
    assert!(!segments().contains(&segment), "its memory is given back");
}

#[test]
fn old_postgres_and_pgbouncer_are_gone_after_kill_9_of_whoever_started_them() {
    let mut program = Program::postgres(&["15"]);
    let mut below = std::fs::read_dir(program.folder.path()).unwrap();
    let server =
        below.find_map(|entry| Some(entry.unwrap().path()).filter(|p| p.join("data").exists()));
    let segment = segment_in(&server.unwrap());
    assert!(segments().contains(&segment));
    program.kill_9();
    program.gone();
    assert!(!segments().contains(&segment), "its memory is given back");
}

#[test]
fn new_postgres_in_a_container_is_gone_after_kill_9_of_whoever_started_it() {
    let mut program = Program::postgres(&["17", "in-a-container"]);
    let name = name_of(&program.endpoint);
    assert_eq!(containers_with(&name).lines().count(), 1);
    program.kill_9();
    eventually("no container of it is left", || containers_with(&name).is_empty());
    program.gone();
}
