//! A PostgreSQL of a test's own.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

mod client;
mod version;

use std::{net::SocketAddrV4, path::Path};

use tempfile::TempDir;

use crate::{
    certificates::{self, Certificate, Identity},
    container::Contained,
    place::{Place, State, end_of, is_taken},
    plain,
    ports::Ports,
    process::Process,
    source::Source,
    wait,
    watchdog::Watchdog,
};
use client::{Clients, Programs};

pub use version::PostgresVersion;

/// The role that a server with TLS lets in by its certificate alone.
pub const CERTIFIED: &str = "certified";

/// How often a server is begun anew because somebody took its port in between.
const STARTS: u32 = 5;

/// The port that a server in a container listens on.
const PORT: u16 = 5432;

/// The folder that a server in a container keeps all in.
const FOLDER: &str = "/tmp/dlock";

/// Makes the data and becomes the server.
const LIFE: &str = include_str!("life.sh");

/// What every server is set to. It is killed in the middle of its work, so it syncs what it promised,
/// and it shares no memory by name, which would stay behind. Its zone is an odd one: a time that was
/// stored without a zone is seen.
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("shared_buffers", "16MB"),
    ("max_connections", "300"),
    ("dynamic_shared_memory_type", "mmap"),
    ("jit", "off"),
    ("timezone", "Asia/Kathmandu"),
    ("log_timezone", "UTC"),
    ("log_line_prefix", "%m [%p] %a "),
];

/// A running PostgreSQL with its own data; the user `postgres` may do everything in it.
///
/// Every call panics when the server is not in the state that the call is for, or when what it waits
/// for has not come after half a minute.
#[derive(Debug)]
pub struct PostgresServer {
    version: PostgresVersion,
    place: Place,
    state: State,
    address: SocketAddrV4,
    password: String,
    clients: Clients,
    certificate: Option<Certificate>,
    // In this order: what is above is gone before the watchdog looks, which looks into the folder, and
    // all is gone before the port is free.
    watchdog: Watchdog,
    folder: TempDir,
    _ports: Ports,
}

/// A server's data as they were; gone when it is dropped.
#[derive(Debug)]
pub struct PostgresBackup(TempDir);

impl PostgresServer {
    /// Starts a server and returns when it serves.
    ///
    /// # Panics
    /// When there is no PostgreSQL of that version, with words on how to come by one, or when it does
    /// not get ready; the end of its log is shown.
    #[must_use]
    pub fn start(version: PostgresVersion) -> Self {
        Self::start_with(version, &[])
    }

    /// The same with further settings, such as `("deadlock_timeout", "100ms")`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_with(version: PostgresVersion, settings: &[(&str, &str)]) -> Self {
        let source = version.find().unwrap_or_else(|missing| panic!("{missing}"));
        Self::launch(version, &source, settings, false)
    }

    /// The same for clients that want TLS; others are served too. Its certificate is good for its
    /// address and is signed by [`authority`](Self::authority). The role [`CERTIFIED`], which a test
    /// makes, is let in by a certificate alone, and not without TLS.
    ///
    /// # Panics
    /// As [`start`](Self::start); also when there is no `openssl` program.
    #[must_use]
    pub fn start_with_tls(version: PostgresVersion, settings: &[(&str, &str)]) -> Self {
        let source = version.find().unwrap_or_else(|missing| panic!("{missing}"));
        Self::launch(version, &source, settings, true)
    }

    /// The same as [`start_with`](Self::start_with), in a container whatever is installed.
    ///
    /// # Panics
    /// As [`start`](Self::start); also when there is no container engine.
    #[must_use]
    pub fn start_in_container(version: PostgresVersion, settings: &[(&str, &str)]) -> Self {
        let image = version.find_image().unwrap_or_else(|missing| panic!("{missing}"));
        Self::launch(version, &image, settings, false)
    }

    fn launch(
        version: PostgresVersion,
        source: &Source,
        settings: &[(&str, &str)],
        tls: bool,
    ) -> Self {
        for _ in 0..STARTS {
            match Self::attempt(version, source, settings, tls) {
                Ok(server) => return server,
                Err(said) if is_taken(&said) => {}
                Err(said) => panic!("PostgreSQL {version} from {source:?} does not start:\n{said}"),
            }
        }
        panic!("PostgreSQL finds no free port");
    }

    /// One start, until it serves; else what it said.
    fn attempt(
        version: PostgresVersion,
        source: &Source,
        settings: &[(&str, &str)],
        tls: bool,
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("dlock-postgres-").tempdir();
        let folder = folder.expect("there is room for data");
        let ports = Ports::take(1).expect("there are free ports");
        let address = ports.at(0);
        let watchdog = Watchdog::start(folder.path()).expect("a shell can be started");
        let certificate = tls.then(|| {
            certificates::certify(folder.path(), *address.ip())
                .unwrap_or_else(|error| panic!("openssl makes no certificate: {error}"))
        });
        let password = plain::password().expect("the system has chance");
        let [text, key, authority] = match &certificate {
            Some(Certificate { authority, server }) => {
                [&server.certificate, &server.key, authority]
                    .map(|file| std::fs::read_to_string(file).expect("openssl has just written it"))
            }
            None => Default::default(),
        };
        let env = vec![
            ("SERVER_PASSWORD", password.clone()),
            ("SERVER_SETTINGS", lines(settings)),
            ("SERVER_CERTIFICATE", text),
            ("SERVER_KEY", key),
            ("SERVER_AUTHORITY", authority),
            ("SERVER_CERTIFIED", CERTIFIED.to_owned()),
        ];
        let (place, clients) = match source {
            Source::Binary(programs) => {
                plain::give(folder.path()).unwrap_or_else(|error| panic!("{error}"));
                in_process(programs, folder.path(), address, env, &password)
            }
            Source::Image { name, tag } => in_container((name, tag), address, env, &password),
        };
        let state = State::Killed;
        let mut server = Self {
            version,
            place,
            state,
            address,
            password,
            clients,
            certificate,
            watchdog,
            folder,
            _ports: ports,
        };
        server.begin()?;
        Ok(server)
    }

    /// Starts it, and waits until it serves.
    fn begin(&mut self) -> Result<(), String> {
        self.place.start(&self.watchdog)?;
        self.state = State::Running;
        let (mut ended, mut last) = (false, String::new());
        let ready = wait::until(|| {
            ended = self.place.has_ended();
            let asked = self.clients.query("postgres", "SELECT 1");
            let serves = asked.is_ok();
            last = asked.err().unwrap_or_default();
            ended || serves
        });
        if ready && !ended {
            return Ok(());
        }
        Err(format!("{}\n{last}", end_of(&self.log())))
    }

    /// The version it was started as.
    #[must_use]
    pub fn version(&self) -> PostgresVersion {
        self.version
    }

    /// Where it is found. It stays the same in all its lives.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The password of the user `postgres`.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.password
    }

    /// The address of a database for the user `postgres`, such as
    /// `postgres://postgres:0a1b@127.64.3.9:40123/dlock`.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.url_of("postgres", &self.password, database)
    }

    /// The same for another user.
    #[must_use]
    pub fn url_of(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@{}/{database}", self.address)
    }

    /// The file with the certificate of the authority that signed the server's.
    ///
    /// # Panics
    /// Where it was not started with TLS.
    #[must_use]
    pub fn authority(&self) -> &Path {
        &self.certificate.as_ref().expect("it was started with TLS").authority
    }

    /// What [`CERTIFIED`] shows to be let in.
    ///
    /// # Panics
    /// Where it was not started with TLS.
    #[must_use]
    pub fn identity(&self) -> Identity {
        assert!(self.certificate.is_some(), "it was started without TLS");
        certificates::identify(self.folder.path(), CERTIFIED)
            .unwrap_or_else(|error| panic!("openssl makes no certificate: {error}"))
    }

    /// Runs statements in a database.
    ///
    /// # Panics
    /// When one fails, with what the server said.
    pub fn execute(&self, database: &str, sql: &str) {
        let _ = self.query(database, sql);
    }

    /// Runs statements in a database and returns their rows; a null is empty.
    ///
    /// # Panics
    /// When one fails, with what the server said.
    #[must_use]
    pub fn query(&self, database: &str, sql: &str) -> Vec<Vec<String>> {
        self.try_query(database, sql).unwrap_or_else(|said| panic!("{sql}\n{said}"))
    }

    /// The same where the server may be down or refuse.
    ///
    /// # Errors
    /// What the server, or the client for it, said.
    pub fn try_query(&self, database: &str, sql: &str) -> Result<Vec<Vec<String>>, String> {
        self.clients.query(database, sql)
    }

    /// Makes an empty database, whose name is a plain word.
    pub fn new_database(&self, name: &str) {
        self.execute("postgres", &format!("CREATE DATABASE \"{name}\""));
    }

    /// All of a database as statements that make it again.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn dump(&self, database: &str) -> String {
        let dumped = self.clients.run("pg_dump", database, &[], "");
        dumped.unwrap_or_else(|said| panic!("{database} is not dumped: {said}"))
    }

    /// Makes a new database of a dump, which may be another server's.
    ///
    /// # Panics
    /// When a statement of it fails.
    pub fn restore(&self, database: &str, dump: &str) {
        self.new_database(database);
        self.execute(database, dump);
    }

    /// Stops all its processes where they stand (`SIGSTOP`): connections stay, and nothing comes of
    /// them.
    pub fn pause(&mut self) {
        self.assert(&[State::Running]);
        self.place.pause();
        self.state = State::Paused;
    }

    /// Lets them go on (`SIGCONT`).
    pub fn resume(&mut self) {
        self.assert(&[State::Paused]);
        self.place.resume();
        self.state = State::Running;
    }

    /// Ends all its processes in the middle of whatever they are at (`SIGKILL`); its data stay.
    pub fn kill(&mut self) {
        self.assert(&[State::Running, State::Paused]);
        self.place.kill(self.state, &self.watchdog);
        self.state = State::Killed;
    }

    /// Shuts it down in order but without patience: transactions are rolled back, clients are told.
    pub fn stop(&mut self) {
        self.assert(&[State::Running]);
        self.place.stop(&self.watchdog);
        self.state = State::Killed;
    }

    /// Starts it again on the same data and port after [`kill`](Self::kill) or [`stop`](Self::stop),
    /// and waits until it serves.
    pub fn restart(&mut self) {
        self.assert(&[State::Killed]);
        self.begin().unwrap_or_else(|said| panic!("it does not start again:\n{said}"));
    }

    /// Copies its data aside while it does not run, as a backup of the whole server has them.
    #[must_use]
    pub fn back_up(&self) -> PostgresBackup {
        self.assert(&[State::Killed]);
        let folder = tempfile::tempdir().expect("there is room for a backup");
        self.place.copy_data_to(&folder.path().join("data"));
        PostgresBackup(folder)
    }

    /// Puts its data back as they were, while it does not run: its history goes back to then.
    pub fn put_back(&mut self, backup: &PostgresBackup) {
        self.assert(&[State::Killed]);
        self.place.copy_data_from(&backup.0.path().join("data"));
    }

    /// What it said in all its lives.
    #[must_use]
    pub fn log(&self) -> String {
        self.place.log()
    }

    /// A folder that goes with the server, for what a test wants to keep beside it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn assert(&self, states: &[State]) {
        assert!(states.contains(&self.state), "the server is {:?}", self.state);
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.place.remove(&self.watchdog);
    }
}

fn in_process(
    programs: &Path,
    folder: &Path,
    address: SocketAddrV4,
    mut env: Vec<(&'static str, String)>,
    password: &str,
) -> (Place, Clients) {
    env.push(("SERVER_FOLDER", folder.display().to_string()));
    env.push(("SERVER_PROGRAMS", programs.display().to_string()));
    let args = life(&[
        format!("--listen_addresses={}", address.ip()),
        format!("--port={}", address.port()),
        format!("--unix_socket_directories={}", folder.display()),
    ]);
    let (binary, args) = plain::command(Path::new("sh"), args);
    let process = Process {
        binary,
        args,
        env,
        withheld: "PG",
        data: folder.join("data"),
        put_back: Some(folder.join("put-back")),
        log: folder.join("log"),
        life: None,
    };
    let (ip, port) = (address.ip().to_string(), address.port());
    let clients = Clients::new(Programs::Folder(programs.to_owned()), ip, port, password.into());
    (Place::Process(process), clients)
}

fn in_container(
    (image, tag): (&str, &str),
    address: SocketAddrV4,
    mut env: Vec<(&'static str, String)>,
    password: &str,
) -> (Place, Clients) {
    env.push(("SERVER_FOLDER", FOLDER.to_owned()));
    // Nobody else on this machine has that address and port, so nobody has that name.
    let name = format!("dlock-postgres-{address}").replace(['.', ':'], "-");
    let contained = Contained {
        image: image.to_owned(),
        tag: tag.to_owned(),
        name: name.clone(),
        network: None,
        entrypoint: "sh",
        args: life(&[
            "--listen_addresses=*".to_owned(),
            format!("--port={PORT}"),
            format!("--unix_socket_directories={FOLDER}"),
        ]),
        env,
        user: Some("65534:65534"),
        data: "/tmp/dlock/data",
        put_back: Some("/tmp/dlock/put-back"),
        // Everybody may write there, in every image.
        volume: Some("/tmp"),
        port: PORT,
        published: address,
        container: None,
    };
    let here = "127.0.0.1".to_owned();
    let clients = Clients::new(Programs::Container(name), here, PORT, password.to_owned());
    (Place::Container(Box::new(contained)), clients)
}

/// The arguments of a shell that lives one life.
fn life(server: &[String]) -> Vec<String> {
    let shell = ["-c", LIFE, "sh"].map(str::to_owned);
    shell.into_iter().chain(server.iter().cloned()).collect()
}

/// Lines of a configuration; the later of two that set the same holds.
fn lines(settings: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| format!("{name} = '{}'\n", value.replace('\'', "''"));
    SETTINGS.iter().chain(settings).map(line).collect()
}
