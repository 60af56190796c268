//! Short-lived tokens of etcd's own access control (C62).

use std::{sync::Arc, time::Duration};

use dlock_conformance::{
    SystemClock,
    kit::{Caller, key, millis, of, private, until},
    stores::fresh_seed,
};
use dlock_domain::Deadline;
use dlock_etcd::{ConnectError, EtcdConfig, EtcdStore, User};
use dlock_memory::SeededEntropy;
use dlock_ports::{Attempt, WaitEnd};
use dlock_servers::{EtcdCluster, Version};
use etcd_client::Client;

use crate::{in_the_end, on_both, soon};

on_both! {
    c62_a_hold_outlives_many_tokens_and_a_restart
    a_user_who_is_not_let_in_is_told_so
}

async fn with_access_control(cluster: &EtcdCluster) -> EtcdConfig {
    let mut raw = Client::connect(cluster.endpoints(), None).await.unwrap();
    raw.user_add("root", "secret", None).await.unwrap();
    raw.role_add("root").await.unwrap();
    raw.user_grant_role("root", "root").await.unwrap();
    raw.auth_enable().await.unwrap();
    let mut config = EtcdConfig::at(cluster.endpoints());
    config.user = Some(User { name: "root".into(), password: "secret".into() });
    config
}

async fn caller(config: EtcdConfig) -> Caller {
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap();
    Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(10))
}

/// Tokens live for two seconds, the hold for six of their lives; then the member is restarted, which
/// forgets all tokens, and it goes on.
async fn c62_a_hold_outlives_many_tokens_and_a_restart(version: Version) {
    let mut cluster = EtcdCluster::start_with(version, 1, &["--auth-token-ttl=2"]);
    let config = with_access_control(&cluster).await;
    let (a, b) = (caller(config.clone()).await, caller(config).await);
    let session = a.open("worker", millis(4_000)).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let since = b.meet(&key("k"), &private("waiter")).await;
    let waiter = b.backend.waiter.clone().unwrap();
    let waiting = {
        let (waiter, by) = (waiter.clone(), Deadline::at(b.now().after(Duration::from_secs(90))));
        tokio::spawn(async move { waiter.await_release(&key("k"), &since, by).await })
    };
    until("it waits", || waiter.waiters(&key("k")) == 1).await;
    let held = [(handle.key.clone(), handle.token)];
    let keep = || a.backend.sessions.keep_alive(&session.id, &held, soon(&a, 2_000));
    for _ in 0..12 {
        let kept = in_the_end(keep).await;
        assert_eq!(kept.expect("open").lost, []);
        assert!(!waiting.is_finished());
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    cluster.kill(0);
    cluster.restart(0);
    assert_eq!(in_the_end(keep).await.expect("open").lost, []);
    let release = || a.backend.locks.delete_if_owner(&handle.key, handle.token, soon(&a, 2_000));
    assert!(in_the_end(release).await);
    let end = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    let end = end.expect("it is not left asleep").unwrap();
    assert!(matches!(end, WaitEnd::Released | WaitEnd::Fallback), "{end:?}");
    // The watch has come by a new token, too: the next wait is told by it.
    let holder = private("next");
    let take = || b.insert(&handle.key, &holder, dlock_conformance::kit::attempt());
    let Attempt::Granted(next) = (loop {
        match take().await {
            Ok(shot) => break shot,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    }) else {
        panic!("the lock is free")
    };
    let mut told = false;
    let mut held = next;
    for _ in 0..10 {
        let since = b.meet(&key("k"), &private("waiter")).await;
        let (waiter, by) = (waiter.clone(), Deadline::at(b.now().after(Duration::from_secs(30))));
        let waiting =
            tokio::spawn(async move { waiter.await_release(&key("k"), &since, by).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(a.release(&held).await);
        told = waiting.await.unwrap() == WaitEnd::Released;
        if told {
            break;
        }
        held = b.take(&key("k"), &private("holder")).await;
    }
    assert!(told, "every wait is sent to poll: the watch never came back");
}

async fn a_user_who_is_not_let_in_is_told_so(version: Version) {
    let cluster = EtcdCluster::start(version, 1);
    let mut config = with_access_control(&cluster).await;
    config.user = Some(User { name: "root".into(), password: "wrong".into() });
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    let refused = EtcdStore::connect(config.clone(), Arc::new(SystemClock::new()), entropy).await;
    let refused = refused.err().unwrap();
    assert!(matches!(refused, ConnectError::Denied { .. }), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("authentication failed") && !said.contains("wrong"), "{said}");
    // Nobody in particular.
    config.user = None;
    let nobody = caller(config).await;
    let error = nobody.try_open("worker", millis(5_000), None).await.unwrap_err();
    assert_eq!(error.kind(), dlock_domain::ErrorKind::Denied, "{error:?}");
}
