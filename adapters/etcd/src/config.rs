//! What the store can be told.

use std::{fmt, path::PathBuf, time::Duration};

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};

/// Where the cluster is and how to speak to it.
#[derive(Clone)]
pub struct EtcdConfig {
    /// The members' addresses, such as `http://10.0.0.1:2379`; at least one (`etcd.endpoints`).
    pub endpoints: Vec<String>,
    /// What all keys begin with, without a `/` at its end (`etcd.prefix`).
    pub prefix: String,
    /// User name and password, where the cluster asks for them.
    pub user: Option<User>,
    /// Certificates, for `https` addresses.
    pub tls: Option<Tls>,
    /// A file that keeps the highest revision known over a restart (`lock.state_file`); `None`: a
    /// cluster that was set back while this process was down is not noticed.
    pub state_file: Option<PathBuf>,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// How often an idle or waiting connection is pinged, and how long an answer may take: what
    /// finds a connection that was cut without a word.
    pub ping: Ping,
    /// How long the watch is kept open after the last waiter has gone.
    pub watch_linger: Duration,
    /// How many deletes the watch remembers, for waiters that come after them.
    pub watch_ring: usize,
}

/// A user of the cluster. Its `Debug` hides the password.
#[derive(Clone)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// Certificates in PEM.
#[derive(Clone, Default)]
pub struct Tls {
    /// Who may have signed the members' certificates. There are no others: with `https` addresses and
    /// without this no member is trusted.
    pub authority: Option<Vec<u8>>,
    /// Our own certificate and its key, where the members ask for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the members' certificates, if it is not the one in their addresses.
    pub server_name: Option<String>,
}

/// Pings of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The time between two.
    pub every: Duration,
    /// How long one may stay unanswered before the connection is given up.
    pub patience: Duration,
}

impl EtcdConfig {
    /// The documented defaults, at these addresses.
    #[must_use]
    pub fn at(endpoints: Vec<String>) -> Self {
        Self {
            endpoints,
            prefix: "/dlock".to_owned(),
            user: None,
            tls: None,
            state_file: None,
            connect_timeout: Duration::from_secs(2),
            // etcd itself refuses pings that come more often than every five seconds.
            ping: Ping { every: Duration::from_secs(5), patience: Duration::from_secs(3) },
            watch_linger: Duration::from_secs(60),
            watch_ring: 65_536,
        }
    }

    /// The client's options: everything that it leaves off by default is on (trap 22).
    pub(crate) fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new()
            .with_require_leader(true)
            .with_connect_timeout(self.connect_timeout)
            .with_keep_alive(self.ping.every, self.ping.patience)
            .with_keep_alive_while_idle(true)
            .with_auto_token_refresh(true);
        if let Some(user) = &self.user {
            options = options.with_user(&user.name, &user.password);
        }
        if let Some(tls) = &self.tls {
            options = options.with_tls(tls.options());
        }
        options
    }
}

impl Tls {
    fn options(&self) -> TlsOptions {
        let mut options = TlsOptions::new();
        if let Some(authority) = &self.authority {
            options = options.ca_certificate(Certificate::from_pem(authority));
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.identity(Identity::from_pem(certificate, key));
        }
        if let Some(name) = &self.server_name {
            options = options.domain_name(name);
        }
        options
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("user", &self.user)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
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
        let mut config = EtcdConfig::at(vec!["http://127.0.0.1:2379".into()]);
        config.user = Some(User { name: "dlock".into(), password: "hush-hush".into() });
        config.tls =
            Some(Tls { identity: Some((b"c".to_vec(), b"hush-hush".to_vec())), ..Tls::default() });
        let shown = format!("{config:?}");
        assert!(shown.contains("dlock") && !shown.contains("hush"), "{shown}");
    }
}
