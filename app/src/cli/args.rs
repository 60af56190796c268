//! What can be said on the command line.
//!
//! Options that are configuration keys too are taken as text and checked by the table of keys, so
//! that flag, variable and file are read alike; the rest is parsed here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use dlock_domain::{AttemptId, FencingToken, LockError, LockName, OwnerId, Reason, TokenFloor};
use dlock_http::wire;

use super::secret::{self, Secret};
use crate::wiring::StoreCommand;

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
    /// Take a lock and print its token.
    Acquire(Acquire),
    /// Extend the lease behind a lock.
    Renew(Renew),
    /// Give a lock back.
    Release(Release),
    /// Show who holds a lock; exit 1 if nobody does.
    Inspect(Inspect),
    /// List what is held.
    List(List),
    /// Break a lock: its holder loses it, and its token floor rises.
    Revoke(Revoke),
    /// Open, keep or close a session: one lease for many locks.
    #[command(subcommand)]
    Session(Session),
    /// Token floors.
    #[command(subcommand)]
    Floor(Floor),
    /// Say whether the store answers.
    Health(Health),
    /// Show or check the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(flatten)]
    Store(StoreCommand),
    /// Print a shell's completions.
    Completions(Completions),
    /// Print the manual page, or write one for each command into a directory.
    Man(Man),
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

#[derive(Clone, Debug, clap::Args)]
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
    /// The store: embedded, memory, or etcd or postgres in builds that have them [default:
    /// embedded].
    #[arg(long, value_name = "STORE")]
    pub(crate) backend: Option<String>,
    /// Where the embedded store lives [default: /var/lib/dlock for root, else
    /// $XDG_STATE_HOME/dlock].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data_dir: Option<String>,
    /// The members of the etcd cluster, separated by commas [default: http://127.0.0.1:2379].
    #[arg(long, value_name = "URLS")]
    pub(crate) etcd_endpoints: Option<String>,
    /// The PostgreSQL database, as postgres://user@host:5432/database. A password belongs into
    /// postgres.password_file or $DLOCK_POSTGRES_URL: others can read this command line.
    #[arg(long, value_name = "URL")]
    pub(crate) postgres_url: Option<String>,
    /// The namespace of calls that name none [default: default].
    #[arg(long)]
    pub(crate) namespace: Option<String>,
    /// How long requests may take to end after a signal to stop [default: 10s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) drain: Option<String>,
}

/// Where the locks live, and how to say it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
    /// The server to speak to, or several, separated by commas [default: $DLOCK_SERVER, else the
    /// embedded store].
    #[arg(long, value_name = "URL", conflicts_with = "data_dir")]
    pub(crate) server: Option<String>,
    /// Where the embedded store lives [default: $DLOCK_EMBEDDED_PATH, else /var/lib/dlock for
    /// root, $XDG_STATE_HOME/dlock for others].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) data_dir: Option<String>,
    /// The lock's namespace [default: default].
    #[arg(long)]
    pub(crate) namespace: Option<String>,
}

/// How the answer is printed. `run` has no such choice: its output is its command's.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Format {
    /// Print what HTTP would answer.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// How long to wait for the lock, at most 1h.
    #[arg(long, default_value = "1h", value_parser = super::duration::wait, value_name = "DURATION")]
    pub(crate) wait: Duration,
    /// Do not wait: exit 75 if somebody holds the lock.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// How long the lock outlives this machine's death; it is kept alive meanwhile [default: 30s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// Who holds it, for people [default: user@host:pid].
    #[arg(long, value_parser = owner)]
    pub(crate) owner: Option<OwnerId>,
    /// The exit code when the lock is not granted in time.
    #[arg(long, default_value_t = crate::run::exit::NOT_GRANTED, value_name = "CODE")]
    pub(crate) conflict_exit_code: u8,
    /// The command, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Acquire {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// How long to wait for the lock, at most 1h.
    #[arg(long, default_value = "0s", value_parser = super::duration::wait, value_name = "DURATION")]
    pub(crate) wait: Duration,
    /// How long the lock lives without being renewed [default: 30s].
    #[arg(long, value_name = "DURATION", conflicts_with = "session")]
    pub(crate) ttl: Option<String>,
    /// Who holds it, for people [default: user@host:pid].
    #[arg(long, value_parser = owner, conflicts_with = "session")]
    pub(crate) owner: Option<OwnerId>,
    /// The session to hold it with; `-` reads it from standard input.
    #[arg(long, value_parser = secret::parse, value_name = "ID")]
    pub(crate) session: Option<Secret>,
    /// The attempt's id, to be able to repeat it.
    #[arg(long, value_parser = attempt, value_name = "ID")]
    pub(crate) attempt: Option<AttemptId>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Renew {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// The grant's token.
    #[arg(long, value_parser = token)]
    pub(crate) token: FencingToken,
    /// The grant's session; `-` reads it from standard input.
    #[arg(long, value_parser = secret::parse, value_name = "ID")]
    pub(crate) session: Secret,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Release {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// The grant's token.
    #[arg(long, value_parser = token, required_unless_present = "attempt")]
    pub(crate) token: Option<FencingToken>,
    /// Settle this attempt instead, whatever became of it.
    #[arg(long, value_parser = attempt, value_name = "ID", conflicts_with = "token")]
    pub(crate) attempt: Option<AttemptId>,
    /// The grant's session; `-` reads it from standard input.
    #[arg(long, value_parser = secret::parse, value_name = "ID")]
    pub(crate) session: Secret,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// Only names that begin with this.
    #[arg(long, default_value = "", value_parser = prefix)]
    pub(crate) prefix: String,
    /// At most so many.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) limit: u32,
    /// Go on where an earlier list ended: its next_cursor.
    #[arg(long, value_parser = cursor)]
    pub(crate) cursor: Option<LockName>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Revoke {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// The lock's name.
    #[arg(value_parser = name)]
    pub(crate) name: LockName,
    /// Why.
    #[arg(long, value_parser = reason)]
    pub(crate) reason: Reason,
    /// Who does it [default: user@host:pid].
    #[arg(long, value_parser = owner)]
    pub(crate) actor: Option<OwnerId>,
    /// Only if this is the live grant's token.
    #[arg(long, value_parser = token)]
    pub(crate) expected_token: Option<FencingToken>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// Open a session and print its id, which is a secret.
    Open(SessionOpen),
    /// Extend a session's lease.
    Keep(SessionId),
    /// End a session and free all its locks.
    Close(SessionId),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionOpen {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// How long it lives without being kept [default: 30s].
    #[arg(long, value_name = "DURATION")]
    pub(crate) ttl: Option<String>,
    /// Whose it is, for people [default: user@host:pid].
    #[arg(long, value_parser = owner)]
    pub(crate) owner: Option<OwnerId>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionId {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// The session's id; `-` reads it from standard input.
    #[arg(value_parser = secret::parse, value_name = "ID")]
    pub(crate) session: Secret,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Floor {
    /// After a restore: make every later token of a namespace greater than this, and end its live
    /// grants.
    Raise(FloorRaise),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FloorRaise {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
    /// What every later token must exceed.
    #[arg(value_parser = floor, value_name = "AT_LEAST")]
    pub(crate) at_least: TokenFloor,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Health {
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// For which shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Where to write a page for each command; without it the program's own is printed.
    pub(crate) directory: Option<PathBuf>,
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

fn reason(text: &str) -> Result<Reason, String> {
    Reason::new(text).map_err(|error| plain(&error))
}

fn attempt(text: &str) -> Result<AttemptId, String> {
    AttemptId::parse(text).map_err(|error| plain(&error))
}

/// A number in digits alone.
fn number(text: &str) -> Result<u64, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().ok_or_else(|| "must be a whole number".to_owned())
}

fn token(text: &str) -> Result<FencingToken, String> {
    FencingToken::from_user(number(text)?).map_err(|error| plain(&error))
}

fn prefix(text: &str) -> Result<String, String> {
    wire::read_prefix(text).map(str::to_owned).map_err(|error| plain(&error))
}

fn cursor(text: &str) -> Result<LockName, String> {
    wire::read_cursor(text).map_err(|error| plain(&error))
}

fn floor(text: &str) -> Result<TokenFloor, String> {
    TokenFloor::new(number(text)?).map_err(|error| plain(&error))
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
            (["--wait=-1s", "--no-wait"], "--wait"),
            (["--wait", "2h"], "--wait"),
            (["--owner", "a\nb"], "--owner"),
            (["--conflict-exit-code", "256"], "--conflict-exit-code"),
        ] {
            let refused = run(&extra).unwrap_err();
            assert!(refused.contains(option), "{refused}");
        }
        assert!(run(&["--no-wait", "--wait=1s"]).is_err());
        assert!(run(&["--json"]).is_err(), "its output is its command's");
        let list = |extra: &[&str]| Args::try_parse_from(["dlock", "list"].iter().chain(extra));
        assert!(list(&["--cursor", "6162", "--prefix", "a b"]).is_ok());
        for bad in [["--cursor", "xx"], ["--prefix", "a\u{1b}"], ["--limit", "0"]] {
            assert!(list(&bad).is_err(), "{bad:?}");
        }
        assert!(Args::try_parse_from(["dlock", "run", "", "--", "true"]).is_err());
        assert!(Args::try_parse_from(["dlock", "run", "nightly"]).is_err());
    }
}
