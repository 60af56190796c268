//! What can be said on the command line.
//!
//! Options that are configuration keys too are taken as text and checked by the table of keys, so
//! that flag, variable and file are read alike; the rest is parsed here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
use dlock_domain::{LockError, LockName, OwnerId};

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
    /// Show or check the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Own the processes of a command (started by `run` only).
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key with its effective value and where that came from.
    Show(ConfigFile),
    /// Say whether the configuration can stand.
    Check(ConfigFile),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigFile {
    /// The configuration file (TOML) [default: $DLOCK_CONFIG, else none].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
    /// Where to listen [default: 127.0.0.1:7420].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Listen beyond this machine although there are no access rules yet: whoever reaches the
    /// port can take and break locks.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// The store: embedded or memory [default: embedded].
    #[arg(long, value_name = "STORE")]
    pub(crate) backend: Option<String>,
    /// Where the embedded store lives [default: /var/lib/dlock for root, else
    /// $XDG_STATE_HOME/dlock].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data_dir: Option<String>,
    /// The namespace of calls that name none [default: default].
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// How long requests may take to end after a signal to stop [default: 10s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) drain: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// The lock's namespace [default: default].
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// How long to wait for the lock, at most 1h.
    #[arg(long, default_value = "1h", value_parser = super::duration::wait, value_name = "DURATION")]
    pub(crate) wait: std::time::Duration,
    /// Do not wait: exit 75 if somebody holds the lock.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// How long the lock outlives this machine's death; it is kept alive meanwhile [default: 30s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// Who holds it, for people [default: user@host:pid].
    #[arg(long, value_parser = owner)]
    pub(crate) owner: Option<OwnerId>,
    /// Where the embedded store lives [default: /var/lib/dlock for root, else
    /// $XDG_STATE_HOME/dlock].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data_dir: Option<String>,
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

fn owner(text: &str) -> Result<OwnerId, String> {
    OwnerId::new(text).map_err(|error| plain(&error))
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
            (["--wait", "-1s"], "--wait"),
            (["--wait", "2h"], "--wait"),
            (["--owner", "a\nb"], "--owner"),
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
