//! A member that is spoken to through TLS, and knows its clients by their certificates.

use std::{sync::Arc, time::Duration};

use dlock_conformance::{
    SystemClock,
    kit::{Caller, key, millis, private, until},
    stores::fresh_seed,
};
use dlock_domain::Deadline;
use dlock_etcd::{EtcdConfig, EtcdStore, Tls};
use dlock_memory::SeededEntropy;
use dlock_ports::WaitEnd;
use dlock_servers::{EtcdCluster, Version};

use crate::soon;

async fn caller(endpoint: String, tls: Tls) -> Caller {
    let mut config = EtcdConfig::at(vec![endpoint]);
    config.tls = Some(tls);
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap();
    Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(10))
}

/// What its administrator gives to a client.
fn of(cluster: &EtcdCluster) -> Tls {
    let files = cluster.identity("worker");
    let read = |file| std::fs::read(file).unwrap();
    Tls {
        authority: Some(read(cluster.authority().to_owned())),
        identity: Some((read(files.certificate), read(files.key))),
        server_name: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn old_etcd_is_spoken_to_through_tls_with_certificates_on_both_sides() {
    let cluster = EtcdCluster::start_with_tls(Version::Old);
    let at = cluster.secure_endpoint();
    let (a, b) = (caller(at.clone(), of(&cluster)).await, caller(at.clone(), of(&cluster)).await);
    let held = a.take(&key("k"), &private("worker")).await;
    assert!(a.extend(&held).await.is_some());
    // Its watch has a connection of its own.
    let since = b.meet(&key("k"), &private("waiter")).await;
    let waiter = b.backend.waiter.clone().unwrap();
    let waiting = {
        let (waiter, by) = (waiter.clone(), Deadline::at(b.now().after(Duration::from_secs(30))));
        tokio::spawn(async move { waiter.await_release(&key("k"), &since, by).await })
    };
    until("it waits", || waiter.waiters(&key("k")) == 1).await;
    assert!(a.release(&held).await);
    assert_eq!(waiting.await.unwrap(), WaitEnd::Released);

    // The name that is checked may be said apart from the address.
    let named = Tls { server_name: Some("localhost".into()), ..of(&cluster) };
    caller(at.clone(), named).await.take(&key("named"), &private("worker")).await;

    // Nobody is granted anything where one of the two does not know the other.
    let other = EtcdCluster::start_with_tls(Version::Old);
    let nobody = Tls { identity: None, ..of(&cluster) };
    let strange = Tls { identity: of(&other).identity, ..of(&cluster) };
    let distrusted = Tls { authority: of(&other).authority, ..of(&cluster) };
    let misnamed = Tls { server_name: Some("elsewhere".into()), ..of(&cluster) };
    for tls in [nobody, strange, distrusted, misnamed] {
        let caller = caller(at.clone(), tls).await;
        let asked = caller.backend.sessions.open(
            dlock_conformance::kit::owner("worker"),
            millis(60_000),
            None,
            soon(&caller, 1_500),
        );
        let error = asked.await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }
}
