//! Requests that time out and are committed long after (trap 12, C67).

use std::{sync::Arc, time::Duration};

use dlock_conformance::{
    SystemClock,
    kit::{Caller, attempt, key, millis, of, private, private_for},
    stores::fresh_seed,
};
use dlock_domain::{Applied, ErrorKind};
use dlock_etcd::{EtcdConfig, EtcdStore, Ping};
use dlock_faults::{Direction, Proxy};
use dlock_memory::SeededEntropy;
use dlock_ports::{Holder, InsertRequest, Intent};
use dlock_servers::{EtcdCluster, Version};
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};

use crate::{caller, in_the_end, on_both, soon};

on_both! {
    c67_a_late_grant_never_stays
    trap_13_a_late_copy_of_a_granted_attempt_is_granted_nothing
    trap_12_a_naive_request_is_granted_long_after
}

/// The followers stand still, an acquire times out, they go on: the late grant never stays, for an
/// attempt in a session and for one with a session of its own.
async fn c67_a_late_grant_never_stays(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let a = caller(&cluster).await;
    let session = a.open("worker", millis(600_000)).await;
    let private = private_for("worker", millis(600_000));
    // What a private shot would look at first is there already.
    a.meet(&held(&a).await, &private).await;
    for holder in [of(&session), private] {
        let leader = cluster.leader();
        let followers: Vec<usize> = (0..3).filter(|member| *member != leader).collect();
        for member in &followers {
            cluster.pause(*member);
        }
        let named = attempt();
        let request = InsertRequest {
            key: key("k"),
            holder: holder.clone(),
            attempt: named,
            intent: Intent::Acquire,
        };
        let error = a.backend.locks.try_insert(request, soon(&a, 1_000)).await.unwrap_err();
        assert!(error.is_transient(), "INV-07: {error:?}");
        if let Holder::Session(_) = holder {
            assert_eq!((error.kind(), error.applied()), (ErrorKind::Contention, Applied::Unknown));
        }
        // It cannot be settled while nobody answers, and that is what is said.
        let forgotten = a.backend.sessions.forget(&key("k"), &holder, named, soon(&a, 1_000)).await;
        assert!(forgotten.unwrap_err().is_transient());
        for member in &followers {
            cluster.resume(*member);
        }
        let k = key("k");
        in_the_end(|| a.backend.sessions.forget(&k, &holder, named, soon(&a, 2_000))).await;
        // Whatever was on its way has had its chance.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(a.read(&key("k")).await, None, "nothing is held that nobody claims");
        let again = a.insert(&key("k"), &holder, named).await.unwrap_err();
        assert_eq!(again.field(), Some("attempt_id"), "and it can never be granted");
    }
}

/// A shot's replies are lost at some moment after it has made a lease; the next shot of the attempt is
/// granted, and released. Both had the same lease, which ends with the lock: whatever comes late of
/// the first finds none. A lease of its own would go on for an hour, and a late grant with it.
async fn trap_13_a_late_copy_of_a_granted_attempt_is_granted_nothing(version: Version) {
    let cluster = EtcdCluster::start(version, 1);
    let upstream = cluster.endpoint(0).trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(upstream).unwrap();
    let mut config = EtcdConfig::at(vec![format!("http://{}", proxy.addr())]);
    config.ping = Ping { every: Duration::from_secs(1), patience: Duration::from_secs(1) };
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap();
    let a = Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(10));
    let mut raw = Client::connect(cluster.endpoints(), None).await.unwrap();
    let holder = private_for("worker", millis(3_600_000));
    let mut met = 0;
    for round in 0..200_u64 {
        let request = InsertRequest {
            key: key(&format!("k{round}")),
            holder: holder.clone(),
            attempt: attempt(),
            intent: Intent::Acquire,
        };
        let shot = || a.backend.locks.try_insert(request.clone(), soon(&a, 300));
        let cut = async {
            tokio::time::sleep(Duration::from_micros(200 * (round % 40))).await;
            proxy.blackhole(Direction::ToClient);
        };
        let (first, ()) = tokio::join!(shot(), cut);
        // The moment was right if there is a lease and nobody knows what became of the shot.
        let hit = first.is_err() && !raw.leases().await.unwrap().leases().is_empty();
        proxy.pass();
        proxy.reset_all();
        let again = || a.backend.locks.try_insert(request.clone(), soon(&a, 2_000));
        let granted = in_the_end(again).await;
        let dlock_ports::Attempt::Granted(handle) = granted else { panic!("{granted:?}") };
        let release =
            || a.backend.locks.delete_if_owner(&handle.key, handle.token, soon(&a, 2_000));
        in_the_end(release).await;
        let mut left = usize::MAX;
        for _ in 0..100 {
            left = raw.leases().await.unwrap().leases().len();
            if left == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(left, 0, "a lease is left under which a late copy would be granted");
        met += u32::from(hit);
        if met >= 3 {
            return;
        }
    }
    panic!("the moment was right {met} times in 200");
}

/// A lock that somebody holds for good.
async fn held(caller: &dlock_conformance::kit::Caller) -> dlock_domain::LockKey {
    caller.take(&key("held"), &private("somebody")).await.key
}

/// The naive store gives up on a timed-out request. It is committed when the followers go on: a lock
/// that nobody claims.
async fn trap_12_a_naive_request_is_granted_long_after(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let leader = cluster.leader();
    let mut raw = Client::connect([cluster.endpoint(leader)], None).await.unwrap();
    raw.put("warm", "x", None).await.unwrap();
    let followers: Vec<usize> = (0..3).filter(|member| *member != leader).collect();
    for member in &followers {
        cluster.pause(*member);
    }
    let txn = Txn::new()
        .when([Compare::create_revision("naive", CompareOp::Equal, 0)])
        .and_then([TxnOp::put("naive", "mine", None)])
        .or_else([TxnOp::get("naive", None)]);
    let mut sender = raw.clone();
    let timed_out = tokio::time::timeout(Duration::from_secs(1), sender.txn(txn)).await;
    assert!(timed_out.is_err(), "nobody can answer: {timed_out:?}");
    for member in &followers {
        cluster.resume(*member);
    }
    let mut found = false;
    for _ in 0..100 {
        if let Ok(answer) = raw.get("naive", None).await
            && !answer.kvs().is_empty()
        {
            found = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(found, "granted after its caller had given up");
}
