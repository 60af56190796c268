//! A server as a process of this machine.

#![expect(clippy::expect_used, reason = "only tests call it")]

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    tree, wait,
    watchdog::{Kind, Watchdog},
};

/// Becomes the program once a line is read, so that nothing runs that the watchdog was not told of:
/// if the test process dies before it could tell, the line never comes.
const LAUNCH: &str = r#"read -r go && exec "$0" "$@" </dev/null"#;

/// A server; between its lives there is only its data.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) binary: PathBuf,
    pub(crate) args: Vec<String>,
    /// Further variables.
    pub(crate) env: Vec<(&'static str, String)>,
    /// What the variables begin with that it must not inherit: they would be settings of it.
    pub(crate) withheld: &'static str,
    /// The folder that it keeps its data in.
    pub(crate) data: PathBuf,
    /// The folder that data are put into to be taken at the next start; else they are put in the place
    /// of those that are there.
    pub(crate) put_back: Option<PathBuf>,
    /// What it says in all its lives.
    pub(crate) log: PathBuf,
    pub(crate) life: Option<Child>,
}

impl Process {
    /// Starts it; it need not be ready yet.
    pub(crate) fn start(&mut self, watchdog: &Watchdog) {
        let log = File::options().create(true).append(true).open(&self.log);
        let log = log.expect("a log can be kept");
        let mut command = Command::new("sh");
        command.args(["-c", LAUNCH]).arg(&self.binary).args(&self.args).stdin(Stdio::piped());
        command.stdout(log.try_clone().expect("a handle can be had twice")).stderr(log);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(self.withheld.as_bytes()) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let mut life = command.spawn().expect("a shell can be started");
        watchdog.watch(Kind::Process, &life.id().to_string()).expect("the watchdog is there");
        let mut go = life.stdin.take().expect("its input is a pipe");
        go.write_all(b"go\n").expect("it reads");
        self.life = Some(life);
    }

    /// Copies its data, which nobody writes meanwhile.
    pub(crate) fn copy_data_to(&self, to: &Path) {
        copy(&self.data, to);
    }

    /// Replaces its data.
    pub(crate) fn copy_data_from(&self, from: &Path) {
        if let Some(folder) = &self.put_back {
            return copy(from, folder);
        }
        std::fs::remove_dir_all(&self.data).expect("its data can be removed");
        copy(from, &self.data);
    }

    /// What it said in all its lives.
    pub(crate) fn log(&self) -> String {
        let said = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.life.as_mut().is_some_and(|life| matches!(life.try_wait(), Ok(Some(_)) | Err(_)))
    }

    /// `SIGSTOP` to it and its children, until they stand.
    pub(crate) fn pause(&self) {
        tree::pause(self.pid());
    }

    /// `SIGCONT` to it and its children.
    pub(crate) fn resume(&self) {
        tree::resume(self.pid());
    }

    /// `SIGKILL` to it and its children, until they are gone.
    pub(crate) fn kill(&mut self, watchdog: &Watchdog) {
        let Some(mut life) = self.life.take() else { return };
        let children = tree::kill(Pid::from_child(&life));
        // Fails only where the watchdog was killed; then there is nobody to mislead.
        let _ = watchdog.forget(&life.id().to_string());
        let _ = life.wait();
        tree::wait_until_gone(&children);
    }

    /// `SIGINT`, until it has ended.
    pub(crate) fn stop(&mut self, watchdog: &Watchdog) {
        kill_process(self.pid(), Signal::INT).expect("it runs");
        let ended = wait::until(|| self.has_ended());
        assert!(ended, "it does not end:\n{}", self.log());
        self.kill(watchdog);
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.life.as_ref().expect("it runs"))
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp can be started").success(), "the data can be copied");
}
