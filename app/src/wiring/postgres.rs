//! The PostgreSQL store, as configured, and the command that only builds with it have.

use std::{path::Path, sync::Arc, time::Duration};

use dlock_ports::{Backend, Clock, Entropy};
use dlock_postgres::{AfterFailover, ConnectError, PostgresConfig, PostgresStore, Tls};

use crate::cli::ConfigFile;
use crate::config::postgres::PostgresPlace;
use crate::config::{Key, postgres};
use crate::run::exit;

/// The keys of the store.
pub(crate) static KEYS: &[Key] = postgres::KEYS;

/// How long a start may take before it is given up: whoever makes the tables waits 30 s for a turn.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the command line has for the store.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoreCommand {
    /// What is to be done by hand in PostgreSQL.
    #[command(subcommand)]
    Postgres(PostgresCommand),
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PostgresCommand {
    /// Print the SQL that makes the tables, for a server whose role may not: run it with psql.
    Schema(Schema),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Schema {
    #[command(flatten)]
    file: ConfigFile,
    /// The schema that holds the tables [default: dlock].
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
}

impl StoreCommand {
    /// The configuration file that it names, if it does.
    pub(crate) fn file(&self) -> &ConfigFile {
        let Self::Postgres(PostgresCommand::Schema(options)) = self;
        &options.file
    }

    /// The schema that it names, if it does.
    pub(crate) fn schema(&self) -> &Option<String> {
        let Self::Postgres(PostgresCommand::Schema(options)) = self;
        &options.schema
    }

    /// The SQL that it prints.
    ///
    /// # Errors
    /// A schema that cannot be.
    pub(crate) fn sql(&self, place: &PostgresPlace) -> Result<String, String> {
        dlock_postgres::schema_sql(&place.schema).map_err(|error| error.to_string())
    }
}

/// Whether this can be the address of a database.
///
/// # Errors
/// What it must be, without a word of what it is: there may be a password in it.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let read = dlock_postgres::database_of(text);
    read.map(drop).map_err(|error| match error {
        dlock_postgres::BadConfig::Url(problem) => problem,
        other => other.to_string(),
    })
}

/// Whether this can be the name of our schema.
///
/// # Errors
/// What it must be.
pub(crate) fn check_schema(text: &str) -> Result<(), String> {
    dlock_postgres::check_schema(text).map_err(str::to_owned)
}

/// Connects to the database and sees to its tables; the store, and where it is, for people.
///
/// # Errors
/// A file that cannot be read, a database that cannot be reached or lets nobody in, tables that are
/// not there: each as an exit code and in words.
pub(crate) async fn connect(
    place: &PostgresPlace,
    purge_after: Duration,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<(Backend, String), (u8, String)> {
    let usage = |message: String| (exit::USAGE, message);
    // It is there, and can be read, since the configuration was.
    let url = place.url.clone().unwrap_or_default();
    let database = dlock_postgres::database_of(&url).map_err(|error| usage(error.to_string()))?;
    let mut config = PostgresConfig::at(url);
    config.schema.clone_from(&place.schema);
    config.pool = place.pool;
    config.purge_after = purge_after;
    config.after_failover =
        if place.trust_after_failover { AfterFailover::Trust } else { AfterFailover::Refuse };
    credentials(place, &mut config).map_err(|message| (exit::UNREACHABLE, message))?;

    let limit = clock.now().after(PATIENCE);
    let connected = tokio::select! {
        connected = PostgresStore::connect(config, Arc::clone(&clock), entropy) => connected,
        () = clock.sleep_until(limit) => {
            let patience = PATIENCE.as_secs();
            Err(ConnectError::Database(format!("the connection is there, and no answer in {patience} s")))
        }
    };
    match connected {
        Ok(store) => {
            let lives = format!("in PostgreSQL, database {database}, schema {}", place.schema);
            Ok((store.backend(), lives))
        }
        Err(error) => Err(said(&error, &database)),
    }
}

fn said(error: &ConnectError, database: &str) -> (u8, String) {
    match error {
        ConnectError::Config(problem) => (exit::USAGE, problem.to_string()),
        ConnectError::Denied(_) => (
            exit::DENIED,
            format!(
                "PostgreSQL, database {database}: {error}; see to the user in postgres.url, to \
                 postgres.password_file, and to what the server lets that user do"
            ),
        ),
        ConnectError::MayNotCreate { .. } => {
            (exit::DENIED, format!("PostgreSQL, database {database}: {error}"))
        }
        ConnectError::Database(_) => (
            exit::UNREACHABLE,
            format!(
                "PostgreSQL, database {database}: {error}; start the database, or correct \
                 postgres.url (--postgres-url, DLOCK_POSTGRES_URL)"
            ),
        ),
        ConnectError::Newer { .. } | ConnectError::Encoding { .. } | ConnectError::Migration(_) => {
            (exit::UNREACHABLE, format!("PostgreSQL, database {database}: {error}"))
        }
    }
}

/// What lies in files: the password and the certificates. What belongs together was found together
/// when the configuration was read.
fn credentials(place: &PostgresPlace, config: &mut PostgresConfig) -> Result<(), String> {
    if let Some(file) = &place.password_file {
        let key = "postgres.password_file";
        let password = String::from_utf8(bytes(file, key)?)
            .map_err(|_| format!("{key}: {}: is not UTF-8", file.display()))?;
        let password = password.strip_suffix('\n').unwrap_or(&password);
        config.password = Some(password.strip_suffix('\r').unwrap_or(password).to_owned());
    }
    if let Some(file) = &place.ca_file {
        let identity = match (&place.cert_file, &place.key_file) {
            (Some(certificate), Some(key)) => Some((
                bytes(certificate, "postgres.tls.cert_file")?,
                bytes(key, "postgres.tls.key_file")?,
            )),
            _ => None,
        };
        config.tls = Some(Tls { authority: bytes(file, "postgres.tls.ca_file")?, identity });
    }
    Ok(())
}

fn bytes(file: &Path, key: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{key}: {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_at_the_end_is_not_part_of_the_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        for (text, password) in
            [("hush", "hush"), ("hush\n", "hush"), ("hush\r\n", "hush"), (" h\n\n", " h\n")]
        {
            std::fs::write(&file, text).unwrap();
            let mut config = PostgresConfig::at("");
            let password_file = Some(file.clone());
            let place = PostgresPlace { password_file, ..PostgresPlace::default() };
            credentials(&place, &mut config).unwrap();
            assert_eq!(config.password.as_deref(), Some(password), "{text:?}");
        }
    }

    #[test]
    fn every_refusal_has_its_code_and_says_what_to_do() {
        let told = |error| said(&error, "locks at db:5432");
        let may_not = ConnectError::MayNotCreate { schema: "s".into(), role: "r".into() };
        let newer = ConnectError::Newer { schema: "s".into(), version: "v".into() };
        let bad = dlock_postgres::BadConfig::Schema("must be");
        for (error, code, words) in [
            (ConnectError::Database("no".into()), 69, "start the database"),
            (ConnectError::Denied("no".into()), 77, "postgres.password_file"),
            (may_not, 77, "`dlock postgres schema`"),
            (newer, 69, "newer dlock"),
            (ConnectError::Migration("no".into()), 69, "tables cannot be made: no"),
            (ConnectError::Encoding { encoding: "LATIN1".into() }, 69, "ENCODING 'UTF8'"),
            (ConnectError::Config(bad), 64, "postgres.schema: must be"),
        ] {
            let (seen, message) = told(error);
            assert_eq!(seen, code, "{message}");
            assert!(message.contains(words), "{message}");
        }
    }
}
