//! The command line (C3): `serve`, `run`, `config`, and the supervisor that `run` starts.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `args` | every command's options, parsed into values that cannot be wrong |
//! | `duration`, `place`, `owner` | durations; where data lives; who we say we are |
//! | `loaded` | the configuration, as every command loads it first |
//! | `serve`, `run`, `config` | the commands |
//! | `stores` | stores as configured |
//! | `logs` | log lines: JSON off a terminal |
//!
//! Exit codes are in [`crate::run::exit`]: bad usage is 64, help and version are 0.

mod args;
mod config;
mod duration;
mod loaded;
mod logs;
mod owner;
mod place;
mod run;
mod serve;
mod stores;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::run::{exit, supervisor};
use args::{Args, Command};

/// The whole program: reads the command line and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // A closed pipe is no error: whoever asked has read enough.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
    };
    ExitCode::from(match args.command {
        // First of all: it must run before any other thread begins.
        Command::Supervise(options) => supervisor::main(options.control_fd, &options.command),
        Command::Config(command) => config::main(&command),
        Command::Run(options) => run::main(options),
        Command::Serve(options) => serve::main(options),
    })
}

/// A message to a person, on standard error; nothing depends on its being read.
fn say(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "dlock: {message}");
}
