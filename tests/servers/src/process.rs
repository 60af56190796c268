//! A member as a process of this machine.

#![expect(clippy::expect_used, reason = "only tests call it")]

use std::{
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    wait,
    watchdog::{Kind, Watchdog},
};

/// Becomes the program once a line is read, so that nothing runs that the watchdog was not told of:
/// if the test process dies before it could tell, the line never comes.
const LAUNCH: &str = r#"read -r go && exec "$0" "$@" </dev/null"#;

/// A member; between its lives there is only its data.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) binary: PathBuf,
    pub(crate) args: Vec<String>,
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
            if name.as_encoded_bytes().starts_with(b"ETCD") {
                command.env_remove(name);
            }
        }
        let mut life = command.spawn().expect("a shell can be started");
        watchdog.watch(Kind::Process, &life.id().to_string()).expect("the watchdog is there");
        let mut go = life.stdin.take().expect("its input is a pipe");
        go.write_all(b"go\n").expect("it reads");
        self.life = Some(life);
    }

    /// Copies its data, which nobody writes meanwhile.
    pub(crate) fn copy_data_to(&self, to: &Path) {
        copy(self.data(), to);
    }

    /// Replaces its data.
    pub(crate) fn copy_data_from(&self, from: &Path) {
        std::fs::remove_dir_all(self.data()).expect("its data can be removed");
        copy(from, self.data());
    }

    fn data(&self) -> &Path {
        let option = self.args.iter().find_map(|arg| arg.strip_prefix("--data-dir="));
        Path::new(option.expect("a member has its data somewhere"))
    }

    /// Whether it ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.life.as_mut().is_some_and(|life| matches!(life.try_wait(), Ok(Some(_)) | Err(_)))
    }

    /// `SIGSTOP`, until it stands.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let path = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let stands = wait::until(|| {
            let stat = std::fs::read_to_string(&path).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
        });
        assert!(stands, "a process that was sent SIGSTOP goes on");
    }

    /// `SIGCONT`.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// `SIGKILL`, until it is gone.
    pub(crate) fn kill(&mut self, watchdog: &Watchdog) {
        let Some(mut life) = self.life.take() else { return };
        // Fails only where it has ended.
        let _ = life.kill();
        // Fails only where the watchdog was killed; then there is nobody to mislead.
        let _ = watchdog.forget(&life.id().to_string());
        let _ = life.wait();
    }

    fn pid(&self) -> Pid {
        let life = self.life.as_ref().expect("it runs");
        Pid::from_child(life)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp can be started").success(), "the data can be copied");
}
