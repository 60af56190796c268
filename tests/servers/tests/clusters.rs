//! Each version of etcd, installed and in containers, alone and as three: dlock's store works on
//! it, and the cluster does what the tests of faults ask of it.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::{sync::Arc, time::Duration};

use dlock::SystemClock;
use dlock_conformance::kit::{Caller, key, long, of};
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::SeededEntropy;
use dlock_servers::{EtcdCluster, Version};

/// A caller of dlock's store on these members.
async fn caller(endpoints: Vec<String>) -> Caller {
    let clock = Arc::new(SystemClock::new());
    let entropy = Arc::new(SeededEntropy::new(u64::from(std::process::id())));
    let store = EtcdStore::connect(EtcdConfig::at(endpoints), clock.clone(), entropy).await;
    Caller::on(store.expect("it connects").backend(), clock, Duration::from_secs(20))
}

/// Opens, acquires, releases; then the data outlives `kill -9`, and old revisions can be forgotten.
async fn one_member(mut cluster: EtcdCluster) {
    let caller = caller(cluster.endpoints()).await;
    let me = of(&caller.open("me", long()).await);
    let released = caller.take(&key("released"), &me).await;
    assert!(caller.release(&released).await);
    let kept = caller.take(&key("kept"), &me).await;
    assert!(released.token < kept.token);

    let before = cluster.endpoints();
    cluster.kill(0);
    cluster.restart(0);
    assert_eq!(cluster.endpoints(), before);
    assert_eq!(caller.read(&key("kept")).await.expect("it is held").token, kept.token);

    let at = cluster.compact();
    assert!(at >= kept.token.get(), "the whole history was compacted");
    assert_eq!(caller.read(&key("kept")).await.expect("the newest stays").token, kept.token);
}

/// A majority goes on without its leader, whether that stands still or is dead, and has it back.
async fn three_members(mut cluster: EtcdCluster) {
    let first = cluster.leader();
    cluster.pause(first);
    let second = cluster.leader();
    assert_ne!(second, first);
    let others = (0..3).filter(|member| *member != first);
    let caller = caller(others.map(|member| cluster.endpoint(member)).collect()).await;
    let me = of(&caller.open("me", long()).await);
    let lock = caller.take(&key("without-a-leader"), &me).await;
    cluster.resume(first);

    cluster.kill(second);
    assert_ne!(cluster.leader(), second);
    cluster.restart(second);
    for member in 0..3 {
        let through = self::caller(vec![cluster.endpoint(member)]).await;
        let seen = through.read(&lock.key).await.expect("it is held");
        assert_eq!(seen.token, lock.token, "through member {member}");
    }

    (0..3).for_each(|member| cluster.kill(member));
    cluster.restart_all();
    assert!(caller.release(&lock).await, "all of it outlived all of them");
}

/// Tests of one version on one way of running it.
macro_rules! on {
    ($module:ident, $start:expr) => {
        mod $module {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn one_member_serves_dlock_and_keeps_its_data() {
                one_member($start(1, &[])).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn three_members_serve_dlock_while_their_leader_is_paused_and_killed() {
                three_members($start(3, &["--heartbeat-interval=50", "--election-timeout=500"]))
                    .await;
            }

            #[test]
            #[should_panic(expected = "flag provided but not defined")]
            fn what_etcd_says_is_shown_when_it_does_not_start() {
                let _cluster = $start(1, &["--no-such-flag"]);
            }
        }
    };
}

on!(old_etcd, |members, flags| EtcdCluster::start_with(Version::Old, members, flags));
on!(new_etcd, |members, flags| EtcdCluster::start_with(Version::New, members, flags));
on!(old_etcd_in_a_container, |members, flags| {
    EtcdCluster::start_in_containers(Version::Old, members, flags)
});
on!(new_etcd_in_a_container, |members, flags| {
    EtcdCluster::start_in_containers(Version::New, members, flags)
});
