//! Members that do not know yet that time has passed them by (traps 3 and 5).
//!
//! A member is paused, others go on without it, a request is laid into its socket, and it goes on: it
//! answers out of what it remembers before it hears of anything. That is a race, which the old state
//! nearly always wins; a round in which it does not shows nothing and is tried again.

use std::time::Duration;

use dlock_conformance::kit::{key, long, millis, of, private, private_for};
use dlock_servers::{EtcdCluster, Version};
use etcd_client::{Client, Compare, CompareOp, Txn, TxnOp};

use crate::{caller, caller_at, in_the_end, on_both, soon};

on_both! {
    trap_03_a_deposed_leaders_answer_moves_no_deadline
    trap_05_a_member_that_lags_behind_decides_nothing
}

const ROUNDS: usize = 12;

/// Where a lock of the default namespace lies.
fn at(name: &str) -> String {
    format!("/dlock/default/lock/{name}")
}

/// A leader is paused, another one is elected and gives every lease its lifetime anew, the old one goes
/// on and answers a keep-alive as if it led. Whoever believes that, and a look that finds the key, holds
/// on to the lock after its lease has ended. This store compares the terms of both answers. Newer
/// versions of etcd answer like that so rarely that it is not waited for.
async fn trap_03_a_deposed_leaders_answer_moves_no_deadline(version: Version) {
    let ttl = Duration::from_secs(6);
    let (rounds, must_fool) = match version {
        Version::Old => (ROUNDS, true),
        Version::New => (2, false),
    };
    for _ in 0..rounds {
        let mut cluster = EtcdCluster::start(version, 3);
        let old = cluster.leader();
        let a = caller(&cluster).await;
        let holder = private_for("worker", millis(6_000));
        let handle = a.take(&key("k"), &holder).await;
        // The store of a server that speaks to the old leader alone, and the naive one beside it.
        let ours = caller_at(vec![cluster.endpoint(old)]).await;
        ours.read(&key("k")).await.expect("held");
        let mut raw = Client::connect([cluster.endpoint(old)], None).await.unwrap();
        let lease = raw.get(at("k"), None).await.unwrap().kvs()[0].lease();
        let (mut keeper, mut beats) = raw.lease_keep_alive(lease).await.unwrap();
        cluster.pause(old);
        let new = cluster.leader();
        assert_ne!(new, old);
        let mut others = Client::connect([cluster.endpoint(new)], None).await.unwrap();
        // The new leader counts from when it was elected: let some of that pass.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let sent = a.now();
        keeper.keep_alive().await.unwrap();
        let renewing = {
            let (ours, handle) = (ours.clone(), handle.clone());
            tokio::spawn(async move {
                let by = soon(&ours, 3_000);
                ours.backend.locks.extend(&handle.key, handle.token, by).await
            })
        };
        tokio::time::sleep(Duration::from_millis(50)).await;
        cluster.resume(old);
        let beat = tokio::time::timeout(Duration::from_secs(3), beats.message()).await;
        let renewed = renewing.await.unwrap();
        let looked = others.get(at("k"), None).await.unwrap();
        let term = looked.header().unwrap().raft_term();

        // When it really ends, unless ours renewed it for certain.
        let mut gone = a.now();
        for _ in 0..400 {
            if others.get(at("k"), None).await.unwrap().kvs().is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            gone = a.now();
        }
        match renewed {
            Ok(Some(renewed)) => {
                assert!(gone >= renewed.client_deadline, "INV-03: the lease ended before");
            }
            Ok(None) => {}
            Err(error) => assert!(error.is_transient(), "INV-07: {error:?}"),
        }
        // The naive store: the keep-alive was answered, the key was there.
        if let Ok(Ok(Some(beat))) = beat
            && beat.ttl() > 0
            && !looked.kvs().is_empty()
        {
            let naive = sent.after(ttl - Duration::from_millis(120));
            let other_term = beat.header().unwrap().raft_term() != term;
            if other_term && gone < naive {
                return;
            }
        }
    }
    assert!(!must_fool, "the naive store was never fooled");
}

/// A follower is paused, the lock changes hands, the follower goes on. Asked by a transaction without
/// operations it answers from its own copy: the old grant is there. Asked as this store asks, with a
/// read in both branches, it finds out first.
async fn trap_05_a_member_that_lags_behind_decides_nothing(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let mut fooled = 0;
    for round in 0..ROUNDS {
        let leader = cluster.leader();
        let follower = (leader + 1) % 3;
        let others: Vec<String> =
            (0..3).filter(|n| *n != follower).map(|n| cluster.endpoint(n)).collect();
        let (a, ours) =
            (caller_at(others).await, caller_at(vec![cluster.endpoint(follower)]).await);
        let name = format!("k{round}");
        let session = a.open("worker", long()).await;
        let first = a.take(&key(&name), &of(&session)).await;
        ours.extend(&first).await.expect("held");
        let mut raw = Client::connect([cluster.endpoint(follower)], None).await.unwrap();
        raw.get(at(&name), None).await.unwrap();
        cluster.pause(follower);
        let release = || a.backend.locks.delete_if_owner(&first.key, first.token, soon(&a, 3_000));
        assert!(in_the_end(release).await);
        let next = a.take(&key(&name), &private("next")).await;
        // Something to catch up with.
        for n in 0..200 {
            let filler = a.take(&key(&format!("filler{round}/{n}")), &of(&session)).await;
            assert_eq!(filler.session, session.id);
        }
        let revision = i64::try_from(first.token.get()).unwrap();
        let naive = Txn::new().when([Compare::mod_revision(at(&name), CompareOp::Equal, revision)]);
        let right = Txn::new()
            .when([Compare::mod_revision(at(&name), CompareOp::Equal, revision)])
            .and_then([TxnOp::get(at(&name), None)])
            .or_else([TxnOp::get(at(&name), None)]);
        let (mut one, mut two) = (raw.clone(), raw.clone());
        let naive = tokio::spawn(async move { one.txn(naive).await });
        let right = tokio::spawn(async move { two.txn(right).await });
        let renewing = {
            let (ours, first) = (ours.clone(), first.clone());
            tokio::spawn(async move {
                let by = soon(&ours, 5_000);
                ours.backend.locks.extend(&first.key, first.token, by).await
            })
        };
        tokio::time::sleep(Duration::from_millis(50)).await;
        cluster.resume(follower);
        if let Ok(answer) = naive.await.unwrap() {
            fooled += usize::from(answer.succeeded());
        }
        if let Ok(answer) = right.await.unwrap() {
            assert!(!answer.succeeded(), "a linearizable read finds out first");
        }
        match renewing.await.unwrap() {
            Ok(renewed) => assert_eq!(renewed, None, "the grant has ended"),
            Err(error) => assert!(error.is_transient(), "INV-07: {error:?}"),
        }
        assert!(a.extend(&next).await.is_some());
        if fooled > 0 {
            return;
        }
    }
    panic!("the naive store was never fooled");
}
