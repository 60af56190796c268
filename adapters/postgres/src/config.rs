//! What the store can be told.

use std::{fmt, time::Duration};

/// Where the database is and how to speak to it. Its `Debug` hides what is secret.
#[derive(Clone)]
pub struct PostgresConfig {
    /// `postgres://user@host:port/database` (`postgres.url`), in the form that libpq documents;
    /// several hosts, and `target_session_attrs=read-write`, are understood.
    pub url: String,
    /// The password, if it is not in the address.
    pub password: Option<String>,
    /// The schema in the database that holds our tables (`postgres.schema`).
    pub schema: String,
    /// Most connections (`postgres.pool`), at least 3. A quarter of them, at least one, is kept for
    /// renewing, and as many for releasing. While the database does not answer there may be as many
    /// again that are waited for.
    pub pool: usize,
    /// Certificates; without them the connection is not encrypted.
    pub tls: Option<Tls>,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How long an idle lock's row is remembered (`lock.reap.purge_after`).
    pub purge_after: Duration,
    /// Whether tokens go on after the database went over to another timeline or to another cluster
    /// (`postgres.after_failover`).
    pub after_failover: AfterFailover,
}

/// What to do when the database is not the one, or not on the timeline, that the last floor was set
/// in: it may have lost the last tokens that it gave (trap 29).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterFailover {
    /// Grant nothing until an operator has raised the floor.
    #[default]
    Refuse,
    /// Go on. Right only where a standby takes over with every commit that was answered.
    Trust,
}

/// Certificates in PEM.
#[derive(Clone, Default)]
pub struct Tls {
    /// Who may have signed the server's certificate. There are no others.
    pub authority: Vec<u8>,
    /// Our own certificate and its key, where the server asks for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// One connection for everything, one for renewing, one for releasing.
const SMALLEST_POOL: usize = 3;

impl PostgresConfig {
    /// The documented defaults, at this address.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            schema: "dlock".to_owned(),
            pool: 16,
            tls: None,
            connect_timeout: Duration::from_secs(2),
            purge_after: Duration::from_secs(7 * 24 * 60 * 60),
            after_failover: AfterFailover::default(),
        }
    }

    /// Connections for everything, and those that only renewing may use, and only releasing: so many
    /// each.
    pub(crate) fn lanes(&self) -> (usize, usize) {
        let pool = self.pool.max(SMALLEST_POOL);
        let kept = (pool / 4).max(1);
        (pool - 2 * kept, kept)
    }
}

/// Whether a schema's name is one that needs no quotes.
///
/// # Errors
/// What is wrong with it.
pub fn check_schema(name: &str) -> Result<(), &'static str> {
    let mut letters = name.bytes();
    let first = letters.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let rest = letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !first || !rest || name.len() > 63 {
        return Err("must be 1 to 63 of a-z, 0-9 and _, and not begin with a digit");
    }
    if name.starts_with("pg_") {
        return Err("must not begin with pg_, which PostgreSQL keeps for itself");
    }
    Ok(())
}

impl fmt::Debug for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConfig")
            .field("schema", &self.schema)
            .field("pool", &self.pool)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        let mut config = PostgresConfig::at("postgres://u:hush-hush@host/db");
        config.password = Some("hush-hush".into());
        config.tls =
            Some(Tls { identity: Some((vec![], b"hush-hush".to_vec())), ..Tls::default() });
        let shown = format!("{config:?}");
        assert!(shown.contains("schema") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn a_quarter_of_the_pool_each_is_kept() {
        let lanes = |pool| PostgresConfig { pool, ..PostgresConfig::at("") }.lanes();
        assert_eq!([lanes(0), lanes(3), lanes(4), lanes(16)], [(1, 1), (1, 1), (2, 1), (8, 4)]);
    }

    #[test]
    fn schemas_that_need_quotes_are_refused() {
        for good in ["dlock", "_a1", "x"] {
            assert!(check_schema(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "A", "a b", "a\"b", "a;b", "pg_catalog", "é", &"x".repeat(64)] {
            assert!(check_schema(bad).is_err(), "{bad}");
        }
    }
}
