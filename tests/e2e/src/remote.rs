//! Rust clients of a real server: locks over HTTP, on whatever clock the test hands in.

#![expect(clippy::expect_used, reason = "only tests call it")]

use std::{
    net::SocketAddr,
    sync::{Arc, Once},
    time::Duration,
};

use dlock::{Clock, Locks, OsEntropy};
use dlock_client::{RemoteConfig, RemoteLocks, RetryBudget, ServerUrl};

/// How long one try of a call may take: short, since tests make calls that nobody answers, and long
/// for a server on a busy machine.
pub const CALL: Duration = Duration::from_secs(2);

/// A client of the server at this address, which tries each call so many times.
///
/// # Panics
/// Outside a tokio runtime.
#[must_use]
pub fn remote(address: SocketAddr, clock: Arc<dyn Clock>, max_tries: u32) -> RemoteLocks {
    install_tls();
    let url = ServerUrl::parse(&format!("http://{address}")).expect("an address of a server");
    let config = RemoteConfig {
        call_timeout: CALL,
        retry: RetryBudget { max_tries, ..RetryBudget::default() },
        ..RemoteConfig::new(vec![url])
    };
    RemoteLocks::new(config, clock, Arc::new(OsEntropy)).expect("a client")
}

/// Guards over such a client.
///
/// # Panics
/// When the owner or the lifetime is none.
#[must_use]
pub fn locks(client: &RemoteLocks, clock: Arc<dyn Clock>, owner: &str, ttl: Duration) -> Locks {
    let service = Arc::new(client.clone());
    let locks = Locks::builder(service, clock, Arc::new(OsEntropy)).owner(owner).ttl(ttl);
    locks.build().expect("an owner and a lifetime")
}

/// A client cannot be made before the process has a TLS provider, whatever the addresses are.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.install_default().expect("nobody else installs one");
    });
}
