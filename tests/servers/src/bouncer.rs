//! A PgBouncer of a test's own.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

use std::{
    net::{SocketAddrV4, TcpStream},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{
    place::{State, end_of, is_taken},
    plain,
    ports::Ports,
    postgres::PostgresServer,
    process::Process,
    wait,
    watchdog::Watchdog,
};

/// How often it is begun anew because somebody took its port in between.
const STARTS: u32 = 5;

/// The variable that says where its program is.
const VARIABLE: &str = "TEST_DLOCK_PGBOUNCER";

/// Where Debian has it: not on the path of those who are not root.
const INSTALLED: &str = "/usr/sbin/pgbouncer";

/// A running PgBouncer in transaction mode before a PostgreSQL: each transaction of a client may
/// meet another connection.
///
/// Every call panics when it is not in the state that the call is for.
#[derive(Debug)]
pub struct PgBouncer {
    process: Process,
    state: State,
    address: SocketAddrV4,
    user: String,
    password: String,
    // These last: what is above is gone before the watchdog looks, and before the port is free.
    _folder: TempDir,
    watchdog: Watchdog,
    _ports: Ports,
}

/// What stands behind it.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The server's host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whom both sides connect as.
    pub user: String,
    /// That user's password, likewise on both sides.
    pub password: String,
}

impl PgBouncer {
    /// Starts one before a server, with so many connections to each database, and returns when it
    /// takes clients.
    ///
    /// # Panics
    /// When there is no PgBouncer, with words on how to come by one, or when it does not start.
    #[must_use]
    pub fn start(server: &PostgresServer, pool: usize) -> Self {
        let upstream = Upstream {
            host: server.address().ip().to_string(),
            port: server.port(),
            user: "postgres".to_owned(),
            password: server.password().to_owned(),
        };
        Self::start_with(&upstream, pool, &[])
    }

    /// The same before any server, with further settings, such as `("query_wait_timeout", "1")`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_with(upstream: &Upstream, pool: usize, settings: &[(&str, &str)]) -> Self {
        let program = find(&|name| std::env::var(name).ok(), Path::new(INSTALLED).is_file());
        let program = program.unwrap_or_else(|missing| panic!("{missing}"));
        for _ in 0..STARTS {
            match Self::attempt(&program, upstream, pool, settings) {
                Ok(bouncer) => return bouncer,
                Err(said) if is_taken(&said) => {}
                Err(said) => panic!("PgBouncer from {program:?} does not start:\n{said}"),
            }
        }
        panic!("PgBouncer finds no free port");
    }

    fn attempt(
        program: &Path,
        upstream: &Upstream,
        pool: usize,
        settings: &[(&str, &str)],
    ) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("dlock-pgbouncer-").tempdir();
        let folder = folder.expect("there is room for its files");
        let ports = Ports::take(1).expect("there are free ports");
        let address = ports.at(0);
        let watchdog = Watchdog::start(folder.path()).expect("a shell can be started");
        let at = |name: &str| folder.path().join(name);
        let Upstream { host, port, user, password } = upstream;
        let mut ini = format!(
            "[databases]\n* = host={host} port={port}\n[pgbouncer]\nlisten_addr = {}\n\
             listen_port = {}\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {}\n\
             pool_mode = transaction\nmax_client_conn = 1000\ndefault_pool_size = {pool}\n\
             admin_users = {user}\n",
            address.ip(),
            address.port(),
            at("users").display(),
        );
        ini.extend(settings.iter().map(|(name, value)| format!("{name} = {value}\n")));
        plain::write(&at("users"), &format!("\"{user}\" \"{password}\"\n"))
            .and_then(|()| plain::write(&at("ini"), &ini))
            .and_then(|()| plain::give(folder.path()))
            .unwrap_or_else(|error| panic!("{error}"));
        let (binary, args) = plain::command(program, vec![at("ini").display().to_string()]);
        let (data, log) = (at("."), at("log"));
        let process = Process {
            binary,
            args,
            env: Vec::new(),
            withheld: "PG",
            data,
            put_back: None,
            log,
            life: None,
        };
        let mut bouncer = Self {
            process,
            state: State::Killed,
            address,
            user: user.clone(),
            password: password.clone(),
            _folder: folder,
            watchdog,
            _ports: ports,
        };
        bouncer.begin()?;
        Ok(bouncer)
    }

    fn begin(&mut self) -> Result<(), String> {
        self.process.start(&self.watchdog);
        self.state = State::Running;
        let mut ended = false;
        let ready = wait::until(|| {
            ended = self.process.has_ended();
            ended || TcpStream::connect(self.address).is_ok()
        });
        if ready && !ended { Ok(()) } else { Err(end_of(&self.log())) }
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

    /// The address of a database of the server behind it; of `pgbouncer`, that of its own console.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{}:{}@{}/{database}", self.user, self.password, self.address)
    }

    /// Stops it where it stands (`SIGSTOP`): its connections stay, and nothing comes of them.
    pub fn pause(&mut self) {
        self.assert(&[State::Running]);
        self.process.pause();
        self.state = State::Paused;
    }

    /// Lets it go on (`SIGCONT`).
    pub fn resume(&mut self) {
        self.assert(&[State::Paused]);
        self.process.resume();
        self.state = State::Running;
    }

    /// Ends it in the middle of whatever it is at (`SIGKILL`), with all connections on both sides.
    pub fn kill(&mut self) {
        self.assert(&[State::Running, State::Paused]);
        self.process.kill(&self.watchdog);
        self.state = State::Killed;
    }

    /// Starts it again on the same port after [`kill`](Self::kill).
    pub fn restart(&mut self) {
        self.assert(&[State::Killed]);
        self.begin().unwrap_or_else(|said| panic!("it does not start again:\n{said}"));
    }

    /// What it said in all its lives.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    fn assert(&self, states: &[State]) {
        assert!(states.contains(&self.state), "PgBouncer is {:?}", self.state);
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.process.kill(&self.watchdog);
    }
}

/// Where its program is.
fn find(env: &dyn Fn(&str) -> Option<String>, installed: bool) -> Result<PathBuf, String> {
    let told = env(VARIABLE).map(PathBuf::from);
    told.or_else(|| installed.then(|| INSTALLED.into())).ok_or_else(|| {
        format!(
            "no PgBouncer to test on: run `cargo xtask test`, which installs it where it may and says \
             what it lacks for that; or install Debian's package pgbouncer; or set {VARIABLE} to the \
             path of a PgBouncer"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_where_the_environment_says_or_where_debian_has_it() {
        let told = |name: &str| (name == VARIABLE).then(|| "/opt/pgbouncer".to_owned());
        assert_eq!(find(&told, true), Ok("/opt/pgbouncer".into()));
        assert_eq!(find(&|_| None, true), Ok(INSTALLED.into()));
        let said = find(&|_| None, false).unwrap_err();
        assert!(said.contains("cargo xtask test") && said.contains(VARIABLE), "{said}");
    }
}
