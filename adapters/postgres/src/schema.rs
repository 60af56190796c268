//! The tables: made by whoever starts first and may, or by hand from what [`schema_sql`] prints.

use diesel::{
    Connection as _, QueryResult, QueryableByName, RunQueryDsl,
    connection::SimpleConnection,
    sql_query,
    sql_types::{BigInt, Bool, Text},
};
use diesel_async::async_connection_wrapper::AsyncConnectionWrapper;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use dlock_domain::ErrorKind;

use crate::{
    connection::Connection,
    error::Failure,
    pool::{BadConfig, Connector},
};

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("migrations");

/// The same migrations as text, with the numbers that diesel gives them.
const SCRIPTS: &[(&str, &str)] =
    &[("20261201000001", include_str!("../migrations/2026-12-01-000001_first/up.sql"))];

/// One at a time makes the tables: servers may start together.
const TURN: i64 = 0x646c_6f63_6b00;

/// Why a store could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// What was said of the database cannot stand.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// The database cannot be reached, or something in it fails.
    #[error("{0}")]
    Database(String),
    /// It lets this role in with this password nowhere, or not into this database.
    #[error("{0}")]
    Denied(String),
    /// It keeps texts in another encoding than UTF-8, so it cannot hold every name.
    #[error(
        "the database keeps its texts in {encoding}: names of locks are UTF-8, so make one with \
         ENCODING 'UTF8'"
    )]
    Encoding {
        /// The encoding.
        encoding: String,
    },
    /// The tables cannot be made.
    #[error("the tables cannot be made: {0}")]
    Migration(String),
    /// The tables are not there, or not all, and this role may not make them.
    #[error(
        "the schema {schema:?} lacks tables that this version of dlock needs, and the role {role:?} \
         may not create them: let an owner of the database run what `dlock postgres schema` prints, \
         then grant the role what its last lines say"
    )]
    MayNotCreate {
        /// The schema.
        schema: String,
        /// The role.
        role: String,
    },
    /// The tables are of a later version.
    #[error(
        "the schema {schema:?} was made by a newer dlock (it holds migration {version}, which this \
         one does not know): use that version"
    )]
    Newer {
        /// The schema.
        schema: String,
        /// What it holds that is not known here.
        version: String,
    },
}

impl From<Failure> for ConnectError {
    fn from(failure: Failure) -> Self {
        let error = failure.into_error(crate::error::Effect::Reads);
        let detail = error.detail().to_owned();
        // The driver's own words where the server wants a password and nobody said one: without it
        // nothing is asked that could be denied.
        if error.kind() == ErrorKind::Denied || detail.ends_with("password missing") {
            return Self::Denied(detail);
        }
        Self::Database(detail)
    }
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

#[derive(QueryableByName)]
struct Role {
    #[diesel(sql_type = Text)]
    role: String,
    #[diesel(sql_type = Text)]
    encoding: String,
    #[diesel(sql_type = Bool)]
    there: bool,
    #[diesel(sql_type = Bool)]
    may_create: bool,
}

#[derive(QueryableByName)]
pub(crate) struct Yes {
    #[diesel(sql_type = Bool)]
    pub(crate) yes: bool,
}

/// Makes the tables if they are not there and this role may; answers whether the role may ask which
/// history the database is in.
///
/// # Errors
/// As [`ConnectError`] says.
pub(crate) async fn prepare(connector: &Connector, schema: &str) -> Result<bool, ConnectError> {
    let connection = connector.connect().await?;
    let (connection, role) = look(connection, schema).await?;
    let connection = match role {
        Some(role) if !role.may_create => {
            return Err(ConnectError::MayNotCreate { schema: schema.to_owned(), role: role.role });
        }
        Some(_) => migrate(connection, schema.to_owned()).await?,
        None => connection,
    };
    in_schema(&connection, schema).await?;
    let knows: Vec<Yes> = connection.line().rows(sql_query(crate::sql::KNOWS_HISTORY)).await?;
    let knows = knows.first().is_some_and(|knows| knows.yes);
    if knows {
        // The first to come says which history the tokens begin in.
        let _: Vec<Yes> = connection.line().rows(sql_query(crate::sql::NOTE_FIRST_HISTORY)).await?;
    } else {
        tracing::warn!(
            "the role may not ask for the database's identity: a failover that loses tokens is not \
             noticed (grant it EXECUTE on pg_control_system, pg_walfile_name and \
             pg_current_wal_insert_lsn)"
        );
    }
    connection.line().batch("COMMIT").await?;
    Ok(knows)
}

async fn in_schema(connection: &Connection, schema: &str) -> Result<(), Failure> {
    connection.line().batch(format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
         SELECT set_config('search_path', 'pg_catalog, \"{schema}\", pg_temp', true), \
         set_config('synchronous_commit', 'on', true), set_config('statement_timeout', '30000', true), \
         set_config('lock_timeout', '30000', true), \
         set_config('idle_in_transaction_session_timeout', '30000', true)"
    )).await
}

/// Who we are, if something is missing.
async fn look(
    connection: Connection,
    schema: &str,
) -> Result<(Connection, Option<Role>), ConnectError> {
    in_schema(&connection, schema).await?;
    let role = sql_query(
        "SELECT current_user::text AS role, current_setting('server_encoding') AS encoding, \
         to_regclass('__diesel_schema_migrations') IS NOT NULL AS there, \
         CASE WHEN to_regnamespace($1) IS NULL \
         THEN has_database_privilege(current_database(), 'CREATE') \
         ELSE has_schema_privilege($1, 'CREATE') END AS may_create",
    )
    .bind::<Text, _>(schema);
    let role: Vec<Role> = connection.line().rows(role).await?;
    let role = role.into_iter().next().ok_or_else(|| Failure::unreadable("no row"))?;
    if role.encoding != "UTF8" {
        return Err(ConnectError::Encoding { encoding: role.encoding });
    }
    let mut applied: Vec<Version> = Vec::new();
    if role.there {
        applied = connection
            .line()
            .rows(sql_query("SELECT version::text AS version FROM __diesel_schema_migrations"))
            .await?;
    }
    connection.line().batch("ROLLBACK").await?;
    if let Some(unknown) = applied.iter().find(|row| !SCRIPTS.iter().any(|s| s.0 == row.version)) {
        return Err(ConnectError::Newer {
            schema: schema.to_owned(),
            version: unknown.version.clone(),
        });
    }
    let all = applied.len() == SCRIPTS.len();
    Ok((connection, (!all).then_some(role)))
}

async fn migrate(connection: Connection, schema: String) -> Result<Connection, ConnectError> {
    let work = move || {
        let mut connection = AsyncConnectionWrapper::<Connection>::from(connection);
        let done = connection.transaction(|connection| -> QueryResult<()> {
            connection.batch_execute(
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE; \
                 SET LOCAL lock_timeout = '30s'; SET LOCAL statement_timeout = '60s'; \
                 SET LOCAL idle_in_transaction_session_timeout = '60s'; \
                 SET LOCAL synchronous_commit = 'on'",
            )?;
            sql_query("SELECT pg_advisory_xact_lock($1)")
                .bind::<BigInt, _>(TURN)
                .execute(connection)?;
            // Asking first: whoever may create tables in a schema need not be one who may create
            // schemas. The catalogue's own table is asked: the functions about names answer from memory,
            // which knows nothing yet of what was made while this one waited for its turn.
            let there = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS yes";
            let there: Vec<Yes> = sql_query(there).bind::<Text, _>(&schema).load(connection)?;
            if !there.iter().any(|there| there.yes) {
                connection.batch_execute(&format!("CREATE SCHEMA \"{schema}\""))?;
            }
            connection.batch_execute(&format!("SET LOCAL search_path TO \"{schema}\""))?;
            connection
                .run_pending_migrations(MIGRATIONS)
                .map(drop)
                .map_err(diesel::result::Error::QueryBuilderError)
        });
        done.map(|()| connection.into_inner())
            .map_err(|error| ConnectError::Migration(error.to_string()))
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ConnectError::Database(error.to_string()))?
}

/// The SQL that makes the tables in a schema, for a database whose owner does that by hand. It ends
/// with what a role needs that only reads and writes them.
///
/// # Errors
/// A schema that needs quotes.
pub fn schema_sql(schema: &str) -> Result<String, BadConfig> {
    crate::config::check_schema(schema).map_err(BadConfig::Schema)?;
    let mut sql = format!(
        "BEGIN;\nCREATE SCHEMA IF NOT EXISTS \"{schema}\";\n\
         SET LOCAL search_path TO \"{schema}\";\n\
         CREATE TABLE IF NOT EXISTS __diesel_schema_migrations (\n    \
         version varchar(50) PRIMARY KEY NOT NULL,\n    \
         run_on timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP\n);\n"
    );
    for (version, script) in SCRIPTS {
        sql.push_str(&format!(
            "\n{script}\nINSERT INTO __diesel_schema_migrations (version) VALUES ('{version}');\n"
        ));
    }
    sql.push_str(&format!(
        "COMMIT;\n\n\
         -- For a role that may not create anything; put its name for dlock_app:\n\
         -- GRANT USAGE ON SCHEMA \"{schema}\" TO dlock_app;\n\
         -- GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"{schema}\" TO dlock_app;\n\
         -- GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA \"{schema}\" TO dlock_app;\n"
    ));
    Ok(sql)
}

#[cfg(test)]
mod tests {
    use diesel::{migration::MigrationSource, pg::Pg};

    use super::*;

    #[test]
    fn what_is_printed_is_what_is_run() {
        let migrations = MigrationSource::<Pg>::migrations(&MIGRATIONS).unwrap();
        let mut versions: Vec<String> =
            migrations.iter().map(|m| m.name().version().to_string()).collect();
        versions.sort();
        let printed: Vec<&str> = SCRIPTS.iter().map(|script| script.0).collect();
        assert_eq!(versions, printed);
        let sql = schema_sql("dlock").unwrap();
        for (version, script) in SCRIPTS {
            assert!(sql.contains(version) && sql.contains(script));
        }
    }
}
