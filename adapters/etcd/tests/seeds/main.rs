//! What the seeds of the etcd store demand (T-030 to T-033), each against a real cluster, with
//! etcd's own client beside ours to see what really lies there.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod elsewhere;
mod grant;
mod numbering;
mod renew_and_release;
mod revoke;
mod transport;
mod wait;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use dlock_conformance::{
    SystemClock,
    kit::Caller,
    stores::{etcd_endpoints, fresh_seed},
};
use dlock_domain::LockKey;
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_faults::Proxy;
use dlock_memory::SeededEntropy;
use etcd_client::{Client, DeleteOptions, KeyValue};

/// A prefix of the test's own on the cluster, and etcd's own client.
struct Place {
    prefix: String,
    seed: u64,
    raw: Client,
}

impl Place {
    async fn new() -> Self {
        let seed = fresh_seed();
        let raw = Client::connect(etcd_endpoints(), None).await.unwrap();
        Self { prefix: format!("/seed/{seed:016x}"), seed, raw }
    }

    fn config(&self) -> EtcdConfig {
        let mut config = EtcdConfig::at(etcd_endpoints());
        config.prefix.clone_from(&self.prefix);
        config
    }

    /// A store like that of another server, with nothing in its memory.
    async fn store(&mut self) -> EtcdStore {
        let config = self.config();
        self.connect(config).await
    }

    async fn connect(&mut self, config: EtcdConfig) -> EtcdStore {
        self.seed += 1;
        let entropy = Arc::new(SeededEntropy::new(self.seed));
        EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap()
    }

    /// Somebody who calls such a store.
    async fn caller(&mut self) -> Caller {
        caller(&self.store().await)
    }

    /// Somebody whose every byte to and from the cluster goes through a proxy.
    async fn caller_through(&mut self, proxy: &Proxy) -> Caller {
        let mut config = self.config();
        config.endpoints = vec![format!("http://{}", proxy.addr())];
        let store = self.connect(config).await;
        Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(2))
    }

    /// Where a lock's grant lies.
    fn at(&self, key: &LockKey) -> String {
        format!("{}/{}/lock/{}", self.prefix, key.namespace().as_str(), key.name().as_str())
    }

    /// What lies there.
    async fn found(&mut self, key: &LockKey) -> Option<KeyValue> {
        let at = self.at(key);
        self.raw.get(at, None).await.unwrap().kvs().first().cloned()
    }

    /// Deletes a grant behind everybody's back.
    async fn delete(&mut self, key: &LockKey) {
        let at = self.at(key);
        let options = DeleteOptions::new().with_prev_key();
        let deleted = self.raw.delete(at, Some(options)).await.unwrap();
        assert_eq!(deleted.deleted(), 1, "it was there");
    }

    /// A write that has nothing to do with any lock.
    async fn write_elsewhere(&mut self) {
        let at = format!("{}-elsewhere", self.prefix);
        self.raw.put(at, "x", None).await.unwrap();
    }
}

fn caller(store: &EtcdStore) -> Caller {
    Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(20))
}

/// A proxy before the first of the cluster's members.
fn proxy() -> Proxy {
    let first = etcd_endpoints().remove(0);
    let address: SocketAddr = first.trim_start_matches("http://").parse().unwrap();
    Proxy::start(address).unwrap()
}
