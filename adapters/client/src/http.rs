//! The HTTP library, set up: nothing followed, nothing guessed, everything bounded.

use core::time::Duration;

use reqwest::{Certificate, Client, redirect, retry};

use crate::{ConfigError, RemoteConfig};

/// Idle connections are given up before the server does so (10 s), so that few requests meet a
/// connection which is just being closed. Those that do are of unknown outcome like any other.
const POOL_IDLE: Duration = Duration::from_secs(8);
const POOL_PER_SERVER: usize = 64;

/// Builds the client.
///
/// Redirects are not followed: a body holds secrets, and an answer from elsewhere is not this
/// server's. Proxies of the environment are ignored: they would change what a time-out means.
/// The library repeats nothing by itself except what it knows it has not sent.
pub(crate) fn client(config: &RemoteConfig) -> Result<Client, ConfigError> {
    if config.connect_timeout.is_zero() || config.call_timeout.is_zero() {
        return Err(ConfigError::ZeroTimeout);
    }
    // Building would panic without one.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        return Err(ConfigError::NoTlsProvider);
    }
    let mut builder = Client::builder()
        .user_agent(&config.user_agent)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(config.connect_timeout)
        .timeout(config.call_timeout)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_PER_SERVER);
    if !config.servers.iter().any(crate::ServerUrl::is_tls) {
        // No certificate will be checked, so a machine without any must do.
        builder = builder.tls_certs_only(core::iter::empty::<Certificate>());
    }
    builder.build().map_err(ConfigError::Http)
}
