//! The settings as the types that the program works with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dlock_domain::{Backoff, Namespace, Ttl};

use super::ConfigError;
use super::etcd::EtcdPlace;
use super::kind;
use super::postgres::PostgresPlace;
use super::settings::Settings;
use crate::ServiceConfig;

/// Which store a server keeps locks in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendName {
    /// One file on this machine; survives `kill -9` and reboots.
    Embedded,
    /// Nothing survives: for trying things out.
    Memory,
    /// An etcd cluster, for many servers; only in builds with that store.
    Etcd,
    /// A PostgreSQL database, for many servers; only in builds with that store.
    Postgres,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// JSON.
    Json,
    /// Text.
    Text,
}

/// Everything that can be set, checked and typed.
#[derive(Clone, Debug)]
pub struct Effective {
    /// `server`.
    pub servers: Vec<String>,
    /// `lock.backend`.
    pub backend: BackendName,
    /// `lock.namespace`.
    pub namespace: Namespace,
    /// `lock.default.ttl`.
    pub default_ttl: Ttl,
    /// What of `lock.*` the service takes.
    pub service: ServiceConfig,
    /// `lock.max_locks`.
    pub max_locks: u64,
    /// `lock.max_sessions`.
    pub max_sessions: u64,
    /// `lock.reap.purge_after`.
    pub purge_after: Duration,
    /// `embedded.path`.
    pub embedded_path: Option<PathBuf>,
    /// `etcd.*` and `lock.state_file`.
    pub etcd: EtcdPlace,
    /// `postgres.*`.
    pub postgres: PostgresPlace,
    /// `http.listen`.
    pub listen: SocketAddr,
    /// `http.max_body`, in bytes.
    pub max_body: usize,
    /// `http.max_connections`.
    pub max_connections: usize,
    /// `http.drain`.
    pub drain: Duration,
    /// `log.format`.
    pub log_format: LogFormat,
    /// `log.level`.
    pub log_level: String,
}

impl Effective {
    /// Types the settings. They were checked when they were loaded, so an error here is a fault of
    /// the table, reported like any other.
    ///
    /// # Errors
    /// The key that could not be typed.
    pub fn of(settings: &Settings) -> Result<Self, ConfigError> {
        let reader = Reader(settings);
        let backend = match reader.text("lock.backend")? {
            "memory" => BackendName::Memory,
            "etcd" => BackendName::Etcd,
            "postgres" => BackendName::Postgres,
            _ => BackendName::Embedded,
        };
        Ok(Self {
            servers: settings
                .value("server")
                .map(|all| all.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            backend,
            namespace: reader.typed("lock.namespace", |text| {
                Namespace::new(text).map_err(|error| error.detail().to_owned())
            })?,
            default_ttl: reader.typed("lock.default.ttl", |text| {
                Ttl::from_duration(kind::span(text)?).map_err(|error| error.detail().to_owned())
            })?,
            service: ServiceConfig {
                call_budget: reader.typed("lock.call_budget", kind::span)?,
                backoff: Backoff::new(
                    reader.typed("lock.backoff.floor", kind::span)?,
                    reader.typed("lock.backoff.cap", kind::span)?,
                ),
                max_waiters: reader.typed("lock.max_waiters", size)?,
                max_waiters_per_lock: reader.typed("lock.max_waiters_per_lock", size)?,
                reap_interval: reader.typed("lock.reap.interval", kind::span)?,
            },
            max_locks: reader.typed("lock.max_locks", kind::count)?,
            max_sessions: reader.typed("lock.max_sessions", kind::count)?,
            purge_after: reader.typed("lock.reap.purge_after", kind::span)?,
            embedded_path: settings.value("embedded.path").map(PathBuf::from),
            etcd: etcd_place(settings, backend == BackendName::Etcd)?,
            postgres: postgres_place(settings, backend == BackendName::Postgres)?,
            listen: reader.typed("http.listen", |text| {
                text.parse().map_err(|_| "is not an address".to_owned())
            })?,
            max_body: reader.typed("http.max_body", |text| {
                usize::try_from(kind::bytes(text)?).map_err(|error| error.to_string())
            })?,
            max_connections: reader.typed("http.max_connections", size)?,
            drain: reader.typed("http.drain", kind::span)?,
            log_format: match reader.text("log.format")? {
                "json" => LogFormat::Json,
                "text" => LogFormat::Text,
                _ => LogFormat::Auto,
            },
            log_level: reader.text("log.level")?.to_owned(),
        })
    }
}

struct Reader<'a>(&'a Settings);

impl<'a> Reader<'a> {
    fn text(&self, name: &str) -> Result<&'a str, ConfigError> {
        self.0
            .value(name)
            .ok_or_else(|| ConfigError { place: name.into(), problem: "has no value".into() })
    }

    fn typed<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        read(self.text(name)?).map_err(|problem| ConfigError { place: name.into(), problem })
    }
}

/// What is said of etcd; nothing in a build without it. Where locks are kept there, what belongs
/// together must be said together.
fn etcd_place(settings: &Settings, in_use: bool) -> Result<EtcdPlace, ConfigError> {
    let text = |name: &str| settings.value(name).map(str::to_owned);
    let path = |name: &str| settings.value(name).map(PathBuf::from);
    let place = EtcdPlace {
        endpoints: settings
            .value("etcd.endpoints")
            .map(|all| all.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        prefix: text("etcd.prefix").unwrap_or_default(),
        username: text("etcd.username"),
        password_file: path("etcd.password_file"),
        ca_file: path("etcd.tls.ca_file"),
        cert_file: path("etcd.tls.cert_file"),
        key_file: path("etcd.tls.key_file"),
        server_name: text("etcd.tls.server_name"),
        state_file: path("lock.state_file"),
    };
    let pairs = [
        ("etcd.username", "etcd.password_file"),
        ("etcd.password_file", "etcd.username"),
        ("etcd.tls.cert_file", "etcd.tls.key_file"),
        ("etcd.tls.key_file", "etcd.tls.cert_file"),
    ];
    let wrong = |place: &str, problem: String| {
        if in_use { Err(ConfigError { place: place.to_owned(), problem }) } else { Ok(()) }
    };
    for (given, other) in pairs {
        if settings.value(given).is_some() && settings.value(other).is_none() {
            wrong(other, format!("must be set where {given} is"))?;
        }
    }
    let secure = place.endpoints.iter().find(|endpoint| endpoint.starts_with("https://"));
    if let (Some(endpoint), None) = (secure, &place.ca_file) {
        wrong("etcd.tls.ca_file", format!("must be set for {endpoint}: nobody is trusted else"))?;
    }
    Ok(place)
}

/// What is said of PostgreSQL; nothing in a build without it. Where locks are kept there, the
/// database must be said, and what belongs together.
fn postgres_place(settings: &Settings, in_use: bool) -> Result<PostgresPlace, ConfigError> {
    let path = |name: &str| settings.value(name).map(PathBuf::from);
    let pool = settings.value("postgres.pool").map(size).transpose();
    let place = PostgresPlace {
        url: settings.value("postgres.url").map(str::to_owned),
        password_file: path("postgres.password_file"),
        schema: settings.value("postgres.schema").map(str::to_owned).unwrap_or_default(),
        pool: pool
            .map_err(|problem| ConfigError { place: "postgres.pool".into(), problem })?
            .unwrap_or_default(),
        trust_after_failover: settings.value("postgres.after_failover") == Some("trust"),
        ca_file: path("postgres.tls.ca_file"),
        cert_file: path("postgres.tls.cert_file"),
        key_file: path("postgres.tls.key_file"),
    };
    if !in_use {
        return Ok(place);
    }
    let missing = |place: &str, problem: String| Err(ConfigError { place: place.into(), problem });
    if place.url.is_none() {
        let problem = "must be set: --postgres-url postgres://user@host:5432/database";
        return missing("postgres.url", problem.into());
    }
    let pairs = [
        ("postgres.tls.cert_file", "postgres.tls.key_file"),
        ("postgres.tls.key_file", "postgres.tls.cert_file"),
        ("postgres.tls.cert_file", "postgres.tls.ca_file"),
    ];
    for (given, other) in pairs {
        if settings.value(given).is_some() && settings.value(other).is_none() {
            return missing(other, format!("must be set where {given} is"));
        }
    }
    Ok(place)
}

fn size(text: &str) -> Result<usize, String> {
    usize::try_from(kind::count(text)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let settings = Settings::load(&Sources::default()).unwrap();
        let effective = Effective::of(&settings).unwrap();
        assert_eq!(effective.backend, BackendName::Embedded);
        assert_eq!(effective.listen.to_string(), "127.0.0.1:7420");
        assert_eq!(effective.default_ttl.as_millis(), 30_000);
        assert_eq!(effective.max_body, 64 << 10);
        assert_eq!(effective.drain, Duration::from_secs(10));
        let (seen, own) = (effective.service, ServiceConfig::default());
        assert_eq!(seen.call_budget, own.call_budget);
        assert_eq!(seen.backoff, own.backoff);
        assert_eq!(seen.max_waiters, own.max_waiters);
        assert_eq!(seen.max_waiters_per_lock, own.max_waiters_per_lock);
        assert_eq!(seen.reap_interval, own.reap_interval);
        assert!(effective.servers.is_empty() && effective.embedded_path.is_none());
    }
}
