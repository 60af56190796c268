//! The keys of the PostgreSQL store, and what they say.

use std::{fmt, path::PathBuf};

use super::kind::Kind;
use super::table::{Key, entry};

/// The keys; only builds with the store have them.
pub static KEYS: &[Key] = &[
    Key {
        secret: true,
        ..entry(
            "postgres.url",
            Kind::Database,
            None,
            Some("--postgres-url"),
            "the PostgreSQL database that the server keeps locks in; a password in it can be read \
             by others where it stands on a command line",
        )
    },
    entry(
        "postgres.password_file",
        Kind::Path,
        None,
        None,
        "the file with the password of the user in the address; a newline at its end is not part \
         of it",
    ),
    entry(
        "postgres.schema",
        Kind::Schema,
        Some("dlock"),
        Some("--schema"),
        "the schema in the database that holds dlock's tables",
    ),
    entry(
        "postgres.pool",
        Kind::Count(3, 1_000),
        Some("16"),
        None,
        "connections to the database, at most; a quarter is kept for renewing, another for releasing",
    ),
    entry(
        "postgres.after_failover",
        Kind::Choice(&["refuse", "trust"]),
        Some("refuse"),
        None,
        "whether tokens go on after another PostgreSQL took over, or a restore: refuse until the \
         floor was raised, or trust that nothing that was answered is lost",
    ),
    entry(
        "postgres.tls.ca_file",
        Kind::Path,
        None,
        None,
        "the certificates, in PEM, of whoever may have signed the database's; without it the \
         connection is not encrypted",
    ),
    entry(
        "postgres.tls.cert_file",
        Kind::Path,
        None,
        None,
        "our own certificate to PostgreSQL, in PEM",
    ),
    entry(
        "postgres.tls.key_file",
        Kind::Path,
        None,
        None,
        "the key of our own certificate, in PEM",
    ),
];

/// What the keys say; empty in a build without the store. Its `Debug` hides the address.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PostgresPlace {
    /// `postgres.url`.
    pub url: Option<String>,
    /// `postgres.password_file`.
    pub password_file: Option<PathBuf>,
    /// `postgres.schema`.
    pub schema: String,
    /// `postgres.pool`.
    pub pool: usize,
    /// Whether `postgres.after_failover` is `trust`.
    pub trust_after_failover: bool,
    /// `postgres.tls.ca_file`.
    pub ca_file: Option<PathBuf>,
    /// `postgres.tls.cert_file`.
    pub cert_file: Option<PathBuf>,
    /// `postgres.tls.key_file`.
    pub key_file: Option<PathBuf>,
}

impl fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresPlace")
            .field("url", &self.url.as_ref().map(|_| "(hidden)"))
            .field("schema", &self.schema)
            .field("pool", &self.pool)
            .field("trust_after_failover", &self.trust_after_failover)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_hidden() {
        let url = Some("postgres://u:hush-hush@host/db".to_owned());
        let shown = format!("{:?}", PostgresPlace { url, ..PostgresPlace::default() });
        assert!(shown.contains("(hidden)") && !shown.contains("hush"), "{shown}");
        assert!(KEYS.iter().any(|key| key.name == "postgres.url" && key.secret));
    }
}
