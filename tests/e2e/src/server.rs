//! A real `dlock serve` on a port of its own, which a test may kill, stop, and start again. It
//! never outlives the test, whichever way that ends.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

use std::{
    fs::File,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{client::Client, dlock, eventually, signal, unconfigured};

/// How often a start is tried again on a port that is not free yet.
const STARTS: u32 = 300;

/// The exit code of a server that could not begin (C3).
const UNREACHABLE: i32 = 69;

/// A server, running or not.
#[derive(Debug)]
pub struct Server {
    data_dir: PathBuf,
    options: Vec<String>,
    variables: Vec<(String, String)>,
    address: SocketAddr,
    life: Option<Life>,
    logs: TempDir,
}

/// One process; dropped, it is killed and reaped.
#[derive(Debug)]
struct Life(Child);

impl Drop for Life {
    fn drop(&mut self) {
        // Both fail only where it has ended and been reaped already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `dlock serve` on a data folder, with nothing of ours in its environment.
#[must_use]
pub fn serve(data_dir: &Path, listen: &str, options: &[String]) -> Command {
    let mut command = Command::new(dlock());
    command.args(["serve", "--listen", listen, "--data-dir"]).arg(data_dir).args(options);
    unconfigured(&mut command).stdin(Stdio::null());
    command
}

impl Server {
    /// Starts a server on a free port and waits until it is ready.
    ///
    /// # Panics
    /// When it does not get ready; its log is shown.
    #[must_use]
    pub fn start(data_dir: &Path, options: &[&str]) -> Self {
        Self::configured(data_dir, options, &[])
    }

    /// [`start`](Self::start), with variables in its environment.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn configured(data_dir: &Path, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut server = Self {
            data_dir: data_dir.to_owned(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            variables: variables.iter().map(owned).collect(),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            life: None,
            logs: tempfile::tempdir().expect("there is room for a log"),
        };
        server.launch();
        server
    }

    /// Where it listens, in all its lives.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    ///
    /// # Panics
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.life.as_ref().expect("the server runs").0.id()
    }

    /// A new client of it.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.address)
    }

    /// `kill -9`: it ends in the middle of whatever it is at.
    ///
    /// # Panics
    /// When it does not run.
    pub fn kill(&mut self) {
        assert!(self.life.take().is_some(), "the server does not run");
    }

    /// `SIGTERM`, and its end.
    ///
    /// # Panics
    /// When it does not run, or has not ended after half a minute.
    pub fn terminate(&mut self) -> ExitStatus {
        self.ask_to_stop();
        self.ended()
    }

    /// `SIGTERM`, and on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn ask_to_stop(&self) {
        signal(self.pid(), Signal::TERM);
    }

    /// How it ended, after [`ask_to_stop`](Self::ask_to_stop).
    ///
    /// # Panics
    /// When it does not run, or has not ended after half a minute.
    pub fn ended(&mut self) -> ExitStatus {
        let mut life = self.life.take().expect("the server runs");
        let mut status = None;
        eventually("the server ends", || {
            status = life.0.try_wait().expect("it can be waited for");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Starts it again on the same data and port, and waits until it is ready.
    ///
    /// # Panics
    /// When it still runs, or does not get ready; its log is shown.
    pub fn restart(&mut self) {
        assert!(self.life.is_none(), "the server still runs");
        self.launch();
    }

    /// What it has logged in all its lives.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.logs.path().join("log")).unwrap_or_default()
    }

    fn launch(&mut self) {
        for _ in 0..STARTS {
            if let Some((life, address)) = self.try_launch() {
                (self.life, self.address) = (Some(life), address);
                let client = self.client();
                let ready = || client.get("/readyz").is_ok_and(|reply| reply.status == 200);
                eventually("the server is ready", ready);
                return;
            }
            sleep(Duration::from_millis(20));
        }
        panic!("the server's port does not get free");
    }

    /// One start, until the server says where it listens; `None` if its port is not free yet.
    fn try_launch(&self) -> Option<(Life, SocketAddr)> {
        let log = self.logs.path().join("log");
        let said = self.logs.path().join("said");
        let log = File::options().create(true).append(true).open(log).expect("a log can be kept");
        let mut command = serve(&self.data_dir, &self.address.to_string(), &self.options);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdout(File::create(&said).expect("a file can be made")).stderr(log);
        let mut life = Life(command.spawn().expect("the binary can be started"));
        let (mut address, mut ended) = (None, None);
        eventually("the server says where it listens", || {
            let text = std::fs::read_to_string(&said).unwrap_or_default();
            address = listens_on(&text);
            ended = life.0.try_wait().expect("it can be waited for");
            address.is_some() || ended.is_some()
        });
        let again = self.address.port() != 0 && self.log().contains("cannot listen on");
        match (address, ended.and_then(|status| status.code())) {
            (Some(address), None) => Some((life, address)),
            (_, Some(UNREACHABLE)) if again => None,
            (_, code) => panic!("the server ended with {code:?}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.life = None;
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the log of {}:\n{}", self.address, self.log());
        }
    }
}

/// The address in the greeting, once its line is whole.
fn listens_on(said: &str) -> Option<SocketAddr> {
    let (line, _) = said.split_once('\n')?;
    line.split_once("http://")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_is_read_when_it_is_whole() {
        assert_eq!(listens_on("dlock serves on http://127.0.0.1:71"), None);
        let whole = "dlock serves on http://127.0.0.1:7120\ndata: x\n";
        assert_eq!(listens_on(whole), Some(SocketAddr::from(([127, 0, 0, 1], 7120))));
    }
}
