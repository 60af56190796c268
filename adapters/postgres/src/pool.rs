//! Making connections, and keeping them: pools of their own for renewing and for releasing, which so
//! never wait behind acquires (trap 28), nor renewing behind releases, which wait for a floor that is
//! being raised.

use std::{str::FromStr, sync::Arc, time::Duration};

use diesel::{ConnectionError, result::Error as DieselError};
use diesel_async::pooled_connection::{
    AsyncDieselConnectionManager, ManagerConfig, PoolError as ManagerError, RecyclingMethod,
    deadpool::{Object, Pool, PoolError},
};
use dlock_domain::{Deadline, LockError};
use dlock_ports::Clock;
use futures_util::FutureExt;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::sync::Semaphore;
use tokio_postgres::{
    Config, NoTls,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    config::{PostgresConfig, Tls},
    connection::Connection,
    error::{Effect, Failure},
};

/// Whose connections a call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Acquiring, looking, everything.
    General,
    /// Renewing, keeping alive.
    Keeping,
    /// Releasing, settling, closing.
    Ending,
}

/// A connection that was lent. Dropping it gives it back; [`Object::take`] does not.
pub(crate) type Lent = Object<Connection>;

/// The pools, one a lane.
pub(crate) struct Pools {
    general: Pool<Connection>,
    keeping: Pool<Connection>,
    ending: Pool<Connection>,
    /// Places for connections that were left: as many as the pools have.
    adrift: Arc<Semaphore>,
}

/// Ends a connection at once of which nobody knows what it is in the middle of.
pub(crate) fn throw_away(connection: Lent) {
    Object::take(connection).cut();
}

/// Makes connections.
pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// What was said of the database cannot stand.
#[derive(Debug, thiserror::Error)]
pub enum BadConfig {
    /// `postgres.url`.
    #[error("postgres.url: {0}")]
    Url(String),
    /// `postgres.schema`.
    #[error("postgres.schema: {0}")]
    Schema(&'static str),
    /// `postgres.tls.*`.
    #[error("postgres.tls.{key}: {why}")]
    Tls {
        /// The key's last part.
        key: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

fn read(url: &str) -> Result<Config, BadConfig> {
    let unreadable = "cannot be read; it has the form postgres://user@host:5432/database";
    // The driver's words may repeat what it could not read, a password among it.
    let to = Config::from_str(url).map_err(|_| BadConfig::Url(unreadable.into()))?;
    if to.get_hosts().is_empty() && to.get_hostaddrs().is_empty() {
        return Err(BadConfig::Url("names no host".into()));
    }
    if to.get_user().is_none() {
        return Err(BadConfig::Url("names no user".into()));
    }
    Ok(to)
}

/// What an address leads to, for people: the database and its hosts, and nothing that is secret.
///
/// # Errors
/// An address that cannot be read, or that leaves out whom to ask or as whom. Nothing of it is in
/// the words.
pub fn database_of(url: &str) -> Result<String, BadConfig> {
    let to = read(url)?;
    let names: Vec<String> = if to.get_hosts().is_empty() {
        to.get_hostaddrs().iter().map(ToString::to_string).collect()
    } else {
        let name = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        to.get_hosts().iter().map(name).collect()
    };
    let ports = to.get_ports();
    // One port may be said for all.
    let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(5432);
    let hosts: Vec<String> =
        names.iter().enumerate().map(|(n, name)| format!("{name}:{}", port(n))).collect();
    // As the server takes it, too.
    let database = to.get_dbname().or(to.get_user()).unwrap_or_default();
    Ok(format!("{database} at {}", hosts.join(", ")))
}

impl Connector {
    /// # Errors
    /// What was said cannot stand.
    pub(crate) fn of(config: &PostgresConfig) -> Result<Self, BadConfig> {
        let mut to = read(&config.url)?;
        if let Some(password) = &config.password {
            to.password(password);
        }
        if to.get_application_name().is_none() {
            to.application_name("dlock");
        }
        to.connect_timeout(config.connect_timeout);
        to.keepalives_idle(Duration::from_secs(10));
        to.tcp_user_timeout(Duration::from_secs(10));
        let tls = match &config.tls {
            Some(tls) => {
                to.ssl_mode(SslMode::Require);
                Some(MakeRustlsConnect::new(client_config(tls)?))
            }
            None if to.get_ssl_mode() == SslMode::Require => {
                return Err(BadConfig::Tls {
                    key: "ca_file",
                    why: "is wanted by sslmode=require: say who signed the server's certificate"
                        .into(),
                });
            }
            None => {
                to.ssl_mode(SslMode::Disable);
                None
            }
        };
        Ok(Self { config: to, tls })
    }

    /// One connection.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                Ok(Connection::new(client, drive(connection)))
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                Ok(Connection::new(client, drive(connection)))
            }
        }
    }
}

fn drive<S>(
    connection: tokio_postgres::Connection<tokio_postgres::Socket, S>,
) -> tokio::task::JoinHandle<()>
where
    S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to PostgreSQL ended");
        }
    })
}

fn client_config(tls: &Tls) -> Result<ClientConfig, BadConfig> {
    let bad = |key: &'static str, why: String| BadConfig::Tls { key, why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&tls.authority) {
        let certificate = certificate.map_err(|error| bad("ca_file", error.to_string()))?;
        roots.add(certificate).map_err(|error| bad("ca_file", error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad("ca_file", "holds no certificate in PEM".into()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad("ca_file", error.to_string()))?
        .with_root_certificates(roots);
    let Some((chain, key)) = &tls.identity else { return Ok(builder.with_no_client_auth()) };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|error| bad("cert_file", error.to_string()))?;
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|error| bad("key_file", error.to_string()))?;
    builder.with_client_auth_cert(chain, key).map_err(|error| bad("cert_file", error.to_string()))
}

/// A failed connection attempt, on its way through diesel's types.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
struct NotConnected(Failure);

impl Pools {
    /// Pools of which no connection is made yet.
    pub(crate) fn new(connector: Arc<Connector>, config: &PostgresConfig) -> Self {
        let (general, kept) = config.lanes();
        let pool = |size: usize| {
            let connector = Arc::clone(&connector);
            let mut manager = ManagerConfig::default();
            manager.recycling_method = RecyclingMethod::Fast;
            manager.custom_setup = Box::new(move |_| {
                let connector = Arc::clone(&connector);
                async move {
                    connector.connect().await.map_err(|failure| {
                        let error = DieselError::QueryBuilderError(Box::new(NotConnected(failure)));
                        ConnectionError::CouldntSetupConfiguration(error)
                    })
                }
                .boxed()
            });
            let manager = AsyncDieselConnectionManager::new_with_config(String::new(), manager);
            // Only a pool with time-outs of its own can fail to be built.
            Pool::builder(manager).max_size(size).build()
        };
        let adrift = Arc::new(Semaphore::new(general + 2 * kept));
        match (pool(general), pool(kept), pool(kept)) {
            (Ok(general), Ok(keeping), Ok(ending)) => Self { general, keeping, ending, adrift },
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => unreachable!("{error}"),
        }
    }

    fn of(&self, lane: Lane) -> &Pool<Connection> {
        match lane {
            Lane::General => &self.general,
            Lane::Keeping => &self.keeping,
            Lane::Ending => &self.ending,
        }
    }

    /// A connection, waited for until the deadline.
    ///
    /// # Errors
    /// `Contention` when none came free or could be made in time; `Denied` when nobody is let in.
    /// Nothing was sent.
    pub(crate) async fn get(
        &self,
        lane: Lane,
        clock: &dyn Clock,
        by: Deadline,
    ) -> Result<Lent, LockError> {
        tokio::select! {
            lent = self.of(lane).get() => lent.map_err(not_lent),
            // Dropping the wait leaves the queue; a connection that was being made is dropped with it.
            () = clock.sleep_until(by.moment()) => {
                Err(LockError::contention("no connection to PostgreSQL came free in time"))
            }
        }
    }

    /// Leaves a connection to itself whose answer did not come in time: `rest`, which says in the end
    /// whether it is as before. Those of its lane that lie idle are forgotten: the server does not
    /// answer, so they are of no use either.
    ///
    /// It counts until the answer is there or the connection breaks, which the system sees to (10 s
    /// after the other end has gone). Cutting it would free nothing: a server that commits and waits
    /// for a standby goes on waiting for it, and does not notice that nobody listens. So there are never
    /// more than twice as many as the pools have, however long the database does not answer.
    pub(crate) fn leave(
        &self,
        lane: Lane,
        connection: Lent,
        rest: impl Future<Output = bool> + Send + 'static,
    ) {
        self.forget_idle(lane);
        if let Ok(place) = Arc::clone(&self.adrift).try_acquire_owned() {
            let connection = Object::take(connection);
            tokio::spawn(async move {
                rest.await;
                drop((connection, place));
            });
            return;
        }
        // No place is left: it keeps the one in its pool.
        tokio::spawn(async move {
            if rest.await {
                drop(connection);
            } else {
                throw_away(connection);
            }
        });
    }

    fn forget_idle(&self, lane: Lane) {
        self.of(lane).retain(|_, _| false);
    }
}

fn not_lent(error: PoolError) -> LockError {
    if let PoolError::Backend(ManagerError::ConnectionError(
        ConnectionError::CouldntSetupConfiguration(DieselError::QueryBuilderError(error)),
    )) = error
    {
        return match error.downcast::<NotConnected>() {
            // Nothing was sent, so it cannot have been done.
            Ok(error) => error.0.into_error(Effect::Reads),
            Err(error) => LockError::contention(error.to_string()),
        };
    }
    LockError::contention(format!("no connection to PostgreSQL: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_leads_to_is_said_without_its_password() {
        for (url, place) in [
            ("postgres://app:hush@db.example:6000/locks", "locks at db.example:6000"),
            ("postgresql://app:hush@a:1,b:2/locks", "locks at a:1, b:2"),
            ("host=a,b user=app password=hush port=7", "app at a:7, b:7"),
            ("postgres://app@%2Frun%2Fpg/locks", "locks at /run/pg:5432"),
        ] {
            assert_eq!(database_of(url).unwrap(), place, "{url}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_not_repeated() {
        for url in [
            "",
            "hush",
            "http://app:hush@host/db",
            "postgres://app:hush@host:hush/db",
            "postgres://app:hush@host/db?hush=hush",
            "postgres://app:hush@host/db?sslmode=hush",
            "postgres:///hush",
            "postgres://host/hush",
        ] {
            let said = database_of(url).unwrap_err().to_string();
            assert!(said.starts_with("postgres.url: ") && !said.contains("hush"), "{url}: {said}");
        }
    }
}
