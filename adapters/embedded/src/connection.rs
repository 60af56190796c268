//! Opening the file: refusals first, then pragmas, schema and clock.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use dlock_domain::Moment;

use crate::clock_domain::{ClockDomain, InUse};
use crate::codec;
use crate::config::{Durability, EmbeddedConfig};
use crate::error::OpenError;
use crate::file_system;
use crate::schema::{dlock_locks, dlock_meta, dlock_sessions, dlock_settled};

/// SQLite's page size, which we leave at its default.
const PAGE_BYTES: u64 = 4_096;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// Makes the directory, refuses a bad place, joins the file's users, and brings the file up to
/// this binary's schema and this boot's clock.
pub(crate) fn prepare(
    config: &EmbeddedConfig,
    domain: &ClockDomain,
    now: Moment,
) -> Result<(InUse, PathBuf), OpenError> {
    let directory = place(&config.directory)?;
    let file = directory.join("dlock.sqlite3");
    let users = directory.join("dlock.sqlite3-users");
    let mut in_use =
        InUse::join(&users, config.busy_timeout).map_err(|source| OpenError::io(&users, source))?;
    create_private(&file)?;
    let mut connection = connect(&file, config)?;
    migrate(&mut connection, &file)?;
    adopt_clock(&mut connection, &file, domain, now, in_use.alone())?;
    in_use.settle().map_err(|source| OpenError::io(&users, source))?;
    // Letting others in is not one step: somebody on another clock may have been alone for a
    // moment. From here on nobody can be.
    if recorded_clock(&mut connection, &file)? != *domain {
        return Err(OpenError::OtherClock { path: file });
    }
    Ok((in_use, file))
}

/// Opens one more connection to a prepared file.
pub(crate) fn connect(file: &Path, config: &EmbeddedConfig) -> Result<SqliteConnection, OpenError> {
    let failed = |message: &str| OpenError::from_message(file, message);
    let mut connection = SqliteConnection::establish(&file.to_string_lossy())
        .map_err(|error| failed(&error.to_string()))?;
    let synchronous = match config.durability {
        Durability::Full => "FULL",
        Durability::BenchOnlyOff => "OFF",
    };
    connection
        .batch_execute(&format!(
            "PRAGMA busy_timeout = {};
             PRAGMA journal_mode = WAL;
             PRAGMA synchronous = {synchronous};
             PRAGMA trusted_schema = OFF;",
            config.busy_timeout.as_millis()
        ))
        .map_err(|error| failed(&error.to_string()))?;
    if let Some(bytes) = config.max_file_bytes {
        let pages = (bytes / PAGE_BYTES).max(1);
        connection
            .batch_execute(&format!("PRAGMA max_page_count = {pages}"))
            .map_err(|error| failed(&error.to_string()))?;
    }
    Ok(connection)
}

fn place(directory: &Path) -> Result<PathBuf, OpenError> {
    let io = |source| OpenError::io(directory, source);
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(io)?;
    let real = fs::canonicalize(directory).map_err(io)?;
    // Without a mount table (no /proc) nothing can be known, and nothing is refused.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(kind) = file_system::network_kind(&mounts, &real) {
        return Err(OpenError::NetworkFileSystem { path: real, kind: kind.to_owned() });
    }
    Ok(real)
}

/// The file holds session ids, which are secrets; SQLite gives its other files the same mode.
fn create_private(file: &Path) -> Result<(), OpenError> {
    let opened = OpenOptions::new().create_new(true).write(true).mode(0o600).open(file);
    match opened {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            Err(OpenError::Full { path: file.into() })
        }
        Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
            Err(OpenError::ReadOnly { path: file.into() })
        }
        Err(source) => Err(OpenError::io(file, source)),
    }
}

/// Forward only, in one transaction, safe with several processes starting at once.
fn migrate(connection: &mut SqliteConnection, file: &Path) -> Result<(), OpenError> {
    let failed = |message: String| OpenError::from_message(file, &message);
    connection
        .immediate_transaction(
            |connection| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
                let known = MigrationNames::known()?;
                let applied = connection.applied_migrations()?;
                if let Some(newer) = applied.iter().map(ToString::to_string).find(|a| !known.has(a))
                {
                    return Err(Box::new(Newer(newer)));
                }
                connection.run_pending_migrations(MIGRATIONS)?;
                Ok(())
            },
        )
        .map_err(|error| match error.downcast::<Newer>() {
            Ok(newer) => OpenError::NewerSchema { path: file.into(), found: newer.0 },
            Err(error) => failed(whole_chain(&*error)),
        })
}

/// The migration harness wraps what SQLite said; what it was is decided from its words.
fn whole_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(": ");
        text.push_str(&source.to_string());
        next = source.source();
    }
    text
}

#[derive(Debug, thiserror::Error)]
#[error("schema {0} is newer than this binary")]
struct Newer(String);

struct MigrationNames(Vec<String>);

impl MigrationNames {
    fn known() -> diesel::migration::Result<Self> {
        use diesel::migration::{Migration, MigrationSource};
        let all: Vec<Box<dyn Migration<diesel::sqlite::Sqlite>>> = MIGRATIONS.migrations()?;
        Ok(Self(all.iter().map(|m| m.name().version().to_string()).collect()))
    }

    fn has(&self, version: &str) -> bool {
        self.0.iter().any(|known| known == version)
    }
}

/// Sees to it that the file's moments are this clock's.
fn adopt_clock(
    connection: &mut SqliteConnection,
    file: &Path,
    domain: &ClockDomain,
    now: Moment,
    alone: bool,
) -> Result<(), OpenError> {
    let adopted = connection
        .immediate_transaction(|connection| {
            let recorded: Option<(String, String, i64)> = dlock_meta::table
                .select((dlock_meta::boot_id, dlock_meta::time_namespace, dlock_meta::boot_nanos))
                .first(connection)
                .optional()?;
            match recorded {
                None => insert_meta(connection, domain, now).map(|()| true),
                Some((boot, time, _))
                    if boot == domain.boot_id && time == domain.time_namespace =>
                {
                    Ok(true)
                }
                Some(_) if !alone => Ok(false),
                Some((_, _, last)) => rearm(connection, domain, now, last).map(|()| true),
            }
        })
        .map_err(|error: diesel::result::Error| {
            OpenError::from_message(file, &error.to_string())
        })?;
    if adopted { Ok(()) } else { Err(OpenError::OtherClock { path: file.into() }) }
}

fn recorded_clock(
    connection: &mut SqliteConnection,
    file: &Path,
) -> Result<ClockDomain, OpenError> {
    let (boot_id, time_namespace) = dlock_meta::table
        .select((dlock_meta::boot_id, dlock_meta::time_namespace))
        .first(connection)
        .map_err(|error| OpenError::from_message(file, &error.to_string()))?;
    Ok(ClockDomain { boot_id, time_namespace })
}

fn insert_meta(
    connection: &mut SqliteConnection,
    domain: &ClockDomain,
    now: Moment,
) -> QueryResult<()> {
    diesel::insert_into(dlock_meta::table)
        .values((
            dlock_meta::id.eq(1),
            dlock_meta::boot_id.eq(&domain.boot_id),
            dlock_meta::time_namespace.eq(&domain.time_namespace),
            dlock_meta::boot_nanos.eq(codec::moment_column(now)),
            dlock_meta::last_token.eq(0),
            dlock_meta::floor.eq(0),
            dlock_meta::sessions.eq(0),
            dlock_meta::locks.eq(0),
            dlock_meta::settled.eq(0),
        ))
        .execute(connection)?;
    Ok(())
}

/// A new boot: sessions that had not expired by the last recorded moment get their whole lifetime
/// again, once, for their remote holders may live on; the others are gone.
fn rearm(
    connection: &mut SqliteConnection,
    domain: &ClockDomain,
    now: Moment,
    last_recorded: i64,
) -> QueryResult<()> {
    let expired = dlock_sessions::table
        .filter(dlock_sessions::expires_at.le(last_recorded))
        .select(dlock_sessions::id);
    diesel::update(dlock_locks::table)
        .filter(dlock_locks::session.assume_not_null().eq_any(expired))
        .set((dlock_locks::session.eq(None::<Vec<u8>>), dlock_locks::attempt.eq(None::<Vec<u8>>)))
        .execute(connection)?;
    let gone = diesel::delete(dlock_sessions::table)
        .filter(dlock_sessions::expires_at.le(last_recorded))
        .execute(connection)?;
    diesel::delete(dlock_settled::table)
        .filter(dlock_settled::session.ne(Vec::new()))
        .filter(dlock_settled::session.ne_all(dlock_sessions::table.select(dlock_sessions::id)))
        .execute(connection)?;
    diesel::update(dlock_sessions::table)
        .set(
            dlock_sessions::expires_at
                .eq(dlock_sessions::ttl_ms * 1_000_000_i64 + codec::moment_column(now)),
        )
        .execute(connection)?;
    diesel::update(dlock_meta::table)
        .set((
            dlock_meta::boot_id.eq(&domain.boot_id),
            dlock_meta::time_namespace.eq(&domain.time_namespace),
            dlock_meta::boot_nanos.eq(codec::moment_column(now)),
            dlock_meta::sessions.eq(dlock_meta::sessions - i64::try_from(gone).unwrap_or(i64::MAX)),
        ))
        .execute(connection)?;
    Ok(())
}
