//! Many at once (C61, C65, C68).

use std::time::Duration;

use dlock_conformance::kit::{key, millis, of, private};
use dlock_domain::Deadline;
use dlock_servers::{EtcdCluster, Version};

use crate::{caller, on_both};

on_both! {
    c61_ten_thousand_aborted_waits_leave_nothing
    c65_five_thousand_locks_that_end_at_once_are_free_within_the_bound
}

/// A number that a member counts of itself.
fn metric(cluster: &EtcdCluster, name: &str) -> f64 {
    let text = ureq::get(format!("{}/metrics", cluster.endpoint(0))).call().unwrap();
    let text = text.into_body().read_to_string().unwrap();
    let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
    line.and_then(|line| line.split_whitespace().next_back()).map_or(0.0, |n| n.parse().unwrap())
}

/// C61: each wait is given up after some milliseconds. Afterwards nobody is counted, the cluster has
/// one watch of ours, and a plain acquire is as quick as ever.
async fn c61_ten_thousand_aborted_waits_leave_nothing(version: Version) {
    let cluster = EtcdCluster::start(version, 1);
    let a = caller(&cluster).await;
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    let waiter = a.backend.waiter.clone().unwrap();
    let by = Deadline::at(a.now().after(Duration::from_secs(600)));
    let mut waits = tokio::task::JoinSet::new();
    for _ in 0..100 {
        for _ in 0..100 {
            let (waiter, since) = (waiter.clone(), since.clone());
            waits.spawn(async move {
                let k = key("k");
                let waiting = waiter.await_release(&k, &since, by);
                let _ = tokio::time::timeout(Duration::from_millis(5), waiting).await;
            });
        }
        while waits.join_next().await.is_some() {}
    }
    assert_eq!(waiter.waiters(&key("k")), 0);
    assert!(metric(&cluster, "etcd_debugging_mvcc_watcher_total") <= 1.0);
    assert!(metric(&cluster, "etcd_debugging_mvcc_watch_stream_total") <= 1.0);
    let plain = async { a.take(&key("other"), &private("x")).await };
    let quick = tokio::time::timeout(Duration::from_secs(1), plain).await;
    assert!(quick.is_ok(), "C61: an acquire takes under a second");
    assert!(a.release(&handle).await);
}

/// C65. The bound: the lifetime, what etcd needs to notice (half a second) and to end a thousand
/// leases a second, and a margin for a busy machine.
async fn c65_five_thousand_locks_that_end_at_once_are_free_within_the_bound(version: Version) {
    const LOCKS: usize = 5_000;
    let cluster = EtcdCluster::start(version, 1);
    let a = caller(&cluster).await;
    let ttl = millis(20_000);
    let mut tasks = tokio::task::JoinSet::new();
    for lane in 0..50 {
        let a = a.clone();
        tasks.spawn(async move {
            for n in 0..LOCKS / 50 {
                let session = a.open("worker", ttl).await;
                a.take(&key(&format!("{lane}/{n}")), &of(&session)).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let granted = a.now();
    let list = || async {
        let directory = a.backend.directory.clone().unwrap();
        let request = dlock_ports::ListRequest {
            namespace: dlock_domain::Namespace::default(),
            prefix: "".into(),
            after: None,
            limit: 1,
        };
        directory.list(request, a.by()).await.unwrap().locks.len()
    };
    let bound = granted.after(ttl.as_duration() + Duration::from_secs(20));
    let mut free = false;
    while a.now() < bound {
        if list().await == 0 {
            free = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(free, "all are free within the bound");
}
