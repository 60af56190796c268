//! A cluster that is set back in its history (trap 15, C64).

use std::{sync::Arc, time::Duration};

use dlock_conformance::{
    SystemClock,
    kit::{Caller, attempt, key, millis, of, private},
    stores::fresh_seed,
};
use dlock_domain::{ErrorKind, FencingToken, Invariant, Namespace, TokenFloor};
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::SeededEntropy;
use dlock_ports::Attempt;
use dlock_servers::{EtcdCluster, Version};

use crate::{caller, in_the_end, on_both};

on_both! {
    c64_after_a_restore_nothing_is_granted_until_the_floor_is_raised
}

async fn caller_with(cluster: &EtcdCluster, state_file: &std::path::Path) -> Caller {
    let mut config = EtcdConfig::at(cluster.endpoints());
    config.state_file = Some(state_file.to_owned());
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap();
    Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(10))
}

/// The token of the next grant, which is given back at once.
async fn next(caller: &Caller) -> FencingToken {
    let (k, holder) = (key("k"), private("worker"));
    let shot = || caller.insert(&k, &holder, attempt());
    match in_the_end(shot).await {
        Attempt::Granted(handle) => {
            assert!(caller.release(&handle).await);
            handle.token
        }
        other => panic!("the lock is free: {other:?}"),
    }
}

/// Refused as an incident that says what to do, again and again, and nothing is held.
async fn assert_refuses(caller: &Caller) {
    let session = loop {
        match caller.try_open("worker", millis(60_000), None).await {
            Ok(session) => break session,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
    };
    for holder in [of(&session), private("worker"), of(&session)] {
        let error = loop {
            match caller.insert(&key("k"), &holder, attempt()).await {
                Err(error) if error.is_transient() => {}
                other => break other.unwrap_err(),
            }
        };
        assert_eq!(error.kind(), ErrorKind::InvariantViolated(Invariant::TokensRise), "{error:?}");
        assert!(error.detail().contains("floor raise"), "{error}");
    }
    assert_eq!(caller.look(&session.id).await.unwrap().1, [], "nothing stays held");
}

/// Three servers: one left running, one restarted with a state file, one restarted without. The first
/// two refuse and say why. The third knows nothing: the control, which hands out a token for a second
/// time. After the floor was raised all of them grant, above every token there ever was.
async fn c64_after_a_restore_nothing_is_granted_until_the_floor_is_raised(version: Version) {
    let mut cluster = EtcdCluster::start(version, 1);
    let folder = tempfile::tempdir().unwrap();
    let state_file = folder.path().join("revision");
    let running = caller(&cluster).await;
    next(&running).await;
    cluster.kill(0);
    let backup = cluster.back_up(0);
    cluster.restart(0);

    let before = caller_with(&cluster, &state_file).await;
    let mut highest = next(&running).await;
    for _ in 0..20 {
        highest = next(&before).await;
    }
    let written = || std::fs::read_to_string(&state_file).unwrap().trim().parse::<u64>().unwrap();
    for _ in 0..200 {
        if written() >= highest.get() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(written() >= highest.get(), "the state file is brought up to date");
    // The one left running knows of it, too.
    assert!(next(&running).await > highest);
    drop(before);

    cluster.kill(0);
    cluster.put_back(0, &backup);
    cluster.restart(0);
    assert_refuses(&running).await;
    let restarted = caller_with(&cluster, &state_file).await;
    assert_refuses(&restarted).await;
    let ignorant = caller(&cluster).await;
    assert!(next(&ignorant).await <= highest, "a token for a second time: the control");

    let floors = running.backend.floors.clone().unwrap();
    let namespace = Namespace::default();
    let raised = floors.raise(&namespace, TokenFloor::NONE, running.by()).await.unwrap();
    assert!(raised.floor.get() >= highest.get());
    for caller in [&running, &restarted, &ignorant, &running] {
        let token = next(caller).await;
        assert!(token > highest && raised.floor.admits(token));
        highest = token;
    }
}
