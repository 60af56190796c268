//! The command line (C3).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `args` | every command's options, parsed into values that cannot be wrong |
//! | `duration`, `place`, `owner` | durations; where data lives; who we say we are |
//! | `loaded` | the configuration, as every command loads it first |
//! | `target` | where a command's locks live: at a server, or in the embedded store |
//! | `serve`, `run`, `locks`, `operate`, `config` | the commands |
//! | `answer`, `table`, `out` | tables for people, or JSON; writing them |
//! | `secret` | a session's id on the command line |
//! | `stores` | stores as configured, and what is to be done by hand in one |
//! | `logs` | log lines: JSON off a terminal |
//!
//! Exit codes are in [`crate::run::exit`]: bad usage is 64, help and version are 0.

mod answer;
mod args;
mod config;
mod duration;
mod loaded;
mod locks;
mod logs;
mod operate;
mod out;
mod owner;
mod place;
mod run;
mod secret;
mod serve;
mod stores;
mod table;
mod target;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::run::{exit, say, shown, supervisor};
pub(crate) use args::ConfigFile;
use args::{Args, Command};

/// The whole program: reads the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return ExitCode::from(refused(&error)),
    };
    if let Command::Supervise(options) = &args.command {
        // First of all: it must run before any other thread begins.
        return ExitCode::from(supervisor::main(options.control_fd, &options.command));
    }
    // The one provider of the whole process; an error says that there is one already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    ExitCode::from(match args.command {
        Command::Supervise(_) => exit::USAGE,
        Command::Acquire(options) => locks::acquire(&options),
        Command::Renew(options) => locks::renew(&options),
        Command::Release(options) => locks::release(&options),
        Command::Inspect(options) => locks::inspect(&options),
        Command::List(options) => locks::list(&options),
        Command::Revoke(options) => locks::revoke(&options),
        Command::Session(command) => operate::session(&command),
        Command::Floor(command) => operate::floor(&command),
        Command::Health(options) => operate::health(&options),
        Command::Completions(options) => operate::completions(&options),
        Command::Man(options) => operate::man(&options),
        Command::Config(command) => config::main(&command),
        Command::Store(command) => stores::main(&command),
        Command::Run(options) => run::main(options),
        Command::Serve(options) => serve::main(options),
    })
}

/// Prints help or the version, or says what cannot be understood of the command line: without
/// colours, since a part of it is somebody else's text, which must not bring its own.
fn refused(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        // A closed pipe is no error: whoever asked has read enough.
        let _ = error.print();
        return 0;
    }
    let text = error.render().to_string();
    let lines: Vec<_> = text.lines().map(shown).collect();
    let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
    exit::USAGE
}
