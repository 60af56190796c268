//! A cluster without space (trap 10, C60).

use std::time::Duration;

use dlock_conformance::kit::{attempt, key, millis, of, private_for};
use dlock_domain::{Applied, Deadline, ErrorKind};
use dlock_ports::WaitEnd;
use dlock_servers::{EtcdCluster, Version};
use etcd_client::{Client, Compare, CompareOp, GetOptions, Txn, TxnOp};

use crate::{caller, on_both, soon};

on_both! {
    trap_10_what_was_refused_for_want_of_space_is_there
    c60_without_space_acquires_are_unknown_and_everything_else_works
}

/// The naive store takes "database space exceeded" for a refusal. Of such transactions some were
/// applied all the same: a lock that nobody claims.
async fn trap_10_what_was_refused_for_want_of_space_is_there(version: Version) {
    // Which of the writes are under way when the space ends is for chance to say; all of them, it may
    // be, or none.
    let mut rounds = Vec::new();
    while rounds.len() < 10 {
        let (refused, there) = fill_up(version).await;
        if there > 0 {
            return;
        }
        rounds.push(refused);
    }
    panic!("of {rounds:?} writes that were refused in ten rounds none was there");
}

/// Writes more at once than there is room for: how many writes were refused, and how many of those
/// are there.
async fn fill_up(version: Version) -> (usize, i64) {
    let cluster = EtcdCluster::start_with(version, 1, &["--quota-backend-bytes=16777216"]);
    // One connection lets few writes of this size be under way at once.
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(Client::connect(cluster.endpoints(), None).await.unwrap());
    }
    let mut writes = tokio::task::JoinSet::new();
    for n in 0..600 {
        let mut raw = clients[n % clients.len()].clone();
        writes.spawn(async move {
            let name = format!("naive{n}");
            let txn = Txn::new()
                .when([Compare::create_revision(name.clone(), CompareOp::Equal, 0)])
                .and_then([TxnOp::put(name.clone(), vec![b'x'; 100_000], None)])
                .or_else([TxnOp::get(name.clone(), None)]);
            let refused = raw.txn(txn).await.is_err_and(|e| e.to_string().contains("space"));
            refused.then_some(name)
        });
    }
    let refused = writes.join_all().await;
    let (mut raw, mut there, mut all) = (clients[0].clone(), 0, 0);
    for name in refused.into_iter().flatten() {
        let options = GetOptions::new().with_count_only();
        there += raw.get(name, Some(options)).await.unwrap().count();
        all += 1;
    }
    (all, there)
}

/// An acquire is transient and of unknown outcome, and nothing of it stays. What is held is renewed,
/// looked at and released as ever, and whoever waits is woken.
async fn c60_without_space_acquires_are_unknown_and_everything_else_works(version: Version) {
    // Sixteen megabytes.
    let cluster = EtcdCluster::start_with(version, 1, &["--quota-backend-bytes=16777216"]);
    let a = caller(&cluster).await;
    let session = a.open("worker", millis(600_000)).await;
    let first = a.take(&key("k1"), &of(&session)).await;
    let second = a.take(&key("k2"), &private_for("worker", millis(600_000))).await;
    let mut raw = Client::connect(cluster.endpoints(), None).await.unwrap();
    let mut full = false;
    for n in 0..400 {
        if raw.put(format!("fill{n}"), vec![b'x'; 200_000], None).await.is_err() {
            full = true;
            break;
        }
    }
    assert!(full, "the quota is reached");

    for holder in [of(&session), private_for("other", millis(600_000))] {
        for _ in 0..3 {
            let named = attempt();
            let error = a.insert(&key("k3"), &holder, named).await.unwrap_err();
            assert_eq!((error.kind(), error.applied()), (ErrorKind::Contention, Applied::Unknown));
            assert!(error.detail().contains("space"), "{error}");
            // The mark finds no space either; what there may be is ended all the same.
            let by = soon(&a, 5_000);
            let settled = a.backend.sessions.forget(&key("k3"), &holder, named, by).await;
            assert!(settled.is_err_and(|error| error.is_transient()));
            assert_eq!(a.read(&key("k3")).await, None, "nothing is held that nobody claims");
        }
    }

    assert!(a.extend(&first).await.is_some() && a.extend(&second).await.is_some());
    assert_eq!(a.keep(&session.id, &[&first]).await.expect("open").lost, []);
    assert_eq!(a.look(&session.id).await.expect("open").1.len(), 1);
    let met = a.read(&key("k1")).await.expect("held");
    assert_eq!(met.token, first.token);
    let recover = dlock_ports::Intent::Recover;
    let since = match a.shot(&key("k1"), &of(&session), attempt(), recover).await {
        Ok(dlock_ports::Attempt::Held(since)) => since,
        other => panic!("{other:?}"),
    };
    let waiter = a.backend.waiter.clone().unwrap();
    let by = Deadline::at(a.now().after(Duration::from_secs(30)));
    let waiting = tokio::spawn(async move { waiter.await_release(&key("k1"), &since, by).await });
    assert!(a.release(&first).await && a.release(&second).await);
    assert_eq!(waiting.await.unwrap(), WaitEnd::Released);
    assert!(a.close(&session.id).await);
}
