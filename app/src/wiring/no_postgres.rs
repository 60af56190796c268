//! What stands in place of the PostgreSQL store in builds without it.

use std::{sync::Arc, time::Duration};

use dlock_ports::{Backend, Clock, Entropy};

use crate::cli::ConfigFile;
use crate::config::Key;
use crate::config::postgres::PostgresPlace;
use crate::run::exit;

const ABSENT: &str =
    "this build of dlock has no PostgreSQL store: build it with --features postgres";

/// There are none.
pub(crate) static KEYS: &[Key] = &[];

/// There is none.
#[derive(Debug)]
pub(crate) enum StoreCommand {}

impl StoreCommand {
    pub(crate) fn file(&self) -> &ConfigFile {
        match *self {}
    }

    pub(crate) fn schema(&self) -> &Option<String> {
        match *self {}
    }

    pub(crate) fn sql(&self, _place: &PostgresPlace) -> Result<String, String> {
        match *self {}
    }
}

impl clap::FromArgMatches for StoreCommand {
    fn from_arg_matches(_matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        Err(clap::Error::raw(clap::error::ErrorKind::InvalidSubcommand, ABSENT))
    }

    fn update_from_arg_matches(&mut self, _matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        match *self {}
    }
}

impl clap::Subcommand for StoreCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        command
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        command
    }

    fn has_subcommand(_name: &str) -> bool {
        false
    }
}

pub(crate) fn check_url(_text: &str) -> Result<(), String> {
    Ok(())
}

pub(crate) fn check_schema(_text: &str) -> Result<(), String> {
    Ok(())
}

pub(crate) async fn connect(
    _place: &PostgresPlace,
    _purge_after: Duration,
    _clock: Arc<dyn Clock>,
    _entropy: Arc<dyn Entropy>,
) -> Result<(Backend, String), (u8, String)> {
    Err((exit::UNREACHABLE, ABSENT.to_owned()))
}
