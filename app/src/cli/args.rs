//! What can be said on the command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use dlock_domain::{LockError, LockName, Namespace, OwnerId, Ttl};
use dlock_ports::AcquireRequest;

use super::duration;

/// Fenced locks: a lock server, and commands that run only while a lock is held.
#[derive(Debug, Parser)]
#[command(name = "dlock", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve locks over HTTP.
    Serve(Serve),
    /// Run a command while holding a lock; without a server, in the embedded store.
    Run(Run),
    /// Own the processes of a command (started by `run` only).
    #[command(hide = true)]
    Supervise(Supervise),
}

/// Which store to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendName {
    /// One file on this machine; survives kill -9 and reboots.
    Embedded,
    /// Nothing survives: for trying things out.
    Memory,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Where to listen.
    #[arg(
        long,
        env = "DLOCK_HTTP_LISTEN",
        default_value = "127.0.0.1:7420",
        value_name = "ADDRESS"
    )]
    pub(crate) listen: SocketAddr,
    /// Listen beyond this machine although there are no access rules yet: whoever reaches the
    /// port can take and break locks.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// The store.
    #[arg(long, env = "DLOCK_LOCK_BACKEND", value_enum, default_value = "embedded")]
    pub(crate) backend: BackendName,
    /// Where the embedded store lives [default: /var/lib/dlock for root, else
    /// $XDG_STATE_HOME/dlock].
    #[arg(long, env = "DLOCK_EMBEDDED_PATH", value_name = "DIRECTORY")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The namespace of calls that name none.
    #[arg(long, env = "DLOCK_LOCK_NAMESPACE", default_value = Namespace::DEFAULT, value_parser = namespace)]
    pub(crate) namespace: Namespace,
    /// How long requests may take to end after a signal to stop.
    #[arg(long, env = "DLOCK_HTTP_DRAIN", default_value = "10s", value_parser = duration::parse)]
    pub(crate) drain: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// The lock's namespace.
    #[arg(long, env = "DLOCK_LOCK_NAMESPACE", default_value = Namespace::DEFAULT, value_parser = namespace)]
    pub(crate) namespace: Namespace,
    /// How long to wait for the lock.
    #[arg(long, default_value = "1h", value_parser = wait)]
    pub(crate) wait: Duration,
    /// Do not wait: exit 75 if somebody holds the lock.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// How long the lock outlives this machine's death; it is kept alive meanwhile.
    #[arg(long, env = "DLOCK_LOCK_DEFAULT_TTL", default_value = "30s", value_parser = ttl)]
    pub(crate) ttl: Ttl,
    /// Who holds it, for people [default: user@host:pid].
    #[arg(long, value_parser = owner)]
    pub(crate) owner: Option<OwnerId>,
    /// Where the embedded store lives [default: /var/lib/dlock for root, else
    /// $XDG_STATE_HOME/dlock].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The exit code when the lock is not granted in time.
    #[arg(long, default_value_t = crate::run::exit::NOT_GRANTED, value_name = "CODE")]
    pub(crate) conflict_exit_code: u8,
    /// The command, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Supervise {
    #[arg(long)]
    pub(crate) control_fd: i32,
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

fn plain(error: &LockError) -> String {
    error.detail().to_owned()
}

fn name(text: &str) -> Result<LockName, String> {
    LockName::new(text).map_err(|error| plain(&error))
}

fn namespace(text: &str) -> Result<Namespace, String> {
    Namespace::new(text).map_err(|error| plain(&error))
}

fn owner(text: &str) -> Result<OwnerId, String> {
    OwnerId::new(text).map_err(|error| plain(&error))
}

fn ttl(text: &str) -> Result<Ttl, String> {
    Ttl::from_duration(duration::parse(text)?).map_err(|error| plain(&error))
}

fn wait(text: &str) -> Result<Duration, String> {
    let wait = duration::parse(text)?;
    if wait > AcquireRequest::MAX_WAIT {
        return Err("must be at most 1h".into());
    }
    Ok(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn bad_values_are_refused_with_their_option() {
        let run = |extra: &[&str]| {
            let words = ["dlock", "run", "nightly"].iter().chain(extra).chain(&["--", "true"]);
            Args::try_parse_from(words).map(drop).map_err(|error| error.to_string())
        };
        assert!(run(&[]).is_ok());
        for (extra, option) in [
            (["--ttl", "5"], "--ttl"),
            (["--ttl", "500ms"], "--ttl"),
            (["--ttl", "25h"], "--ttl"),
            (["--wait", "-1s"], "--wait"),
            (["--wait", "2h"], "--wait"),
            (["--owner", "a\nb"], "--owner"),
            (["--namespace", "A"], "--namespace"),
            (["--conflict-exit-code", "256"], "--conflict-exit-code"),
        ] {
            let refused = run(&extra).unwrap_err();
            assert!(refused.contains(option), "{refused}");
        }
        assert!(run(&["--no-wait", "--wait=1s"]).is_err());
        assert!(Args::try_parse_from(["dlock", "run", "", "--", "true"]).is_err());
        assert!(Args::try_parse_from(["dlock", "run", "nightly"]).is_err());
    }
}
