//! Leaders and members that go away and come back.

use std::time::Duration;

use dlock_conformance::kit::{Caller, key, millis, of, private, private_for, until};
use dlock_domain::{Deadline, ErrorKind, HighWaterMark};
use dlock_ports::WaitEnd;
use dlock_servers::{EtcdCluster, Version};

use crate::{caller, in_the_end, on_both, soon};

on_both! {
    t032_without_a_leader_nothing_is_lost
    c11_a_leader_that_dies_within_half_a_lifetime_loses_nothing
    a_dead_member_costs_nothing_and_a_paused_one_next_to_nothing
    c05_a_paused_member_keeps_no_waiter_asleep
    c63_an_old_leader_that_wakes_up_extends_nothing
    a_restart_of_everything_keeps_what_was_granted
}

/// Two of three members are dead: nobody leads. Every answer is transient, and in the end it says
/// why.
async fn t032_without_a_leader_nothing_is_lost(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let a = caller(&cluster).await;
    let handle = a.take(&key("k"), &private_for("worker", millis(600_000))).await;
    let survivor = cluster.leader();
    for member in (0..3).filter(|member| *member != survivor) {
        cluster.kill(member);
    }
    let mut kinds = Vec::new();
    for _ in 0..60 {
        let by = soon(&a, 1_000);
        let error = a.backend.locks.extend(&handle.key, handle.token, by).await.unwrap_err();
        assert!(error.is_transient(), "INV-07: {error:?}");
        kinds.push(error.kind());
        if error.kind() == ErrorKind::NotLeader {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(kinds.contains(&ErrorKind::NotLeader), "{kinds:?}");
    cluster.restart_all();
    let renewed =
        in_the_end(|| a.backend.locks.extend(&handle.key, handle.token, soon(&a, 2_000))).await;
    assert_eq!(renewed.expect("still held").token, handle.token);
}

/// C11: no loss is reported, and the token stays.
async fn c11_a_leader_that_dies_within_half_a_lifetime_loses_nothing(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let a = caller(&cluster).await;
    let session = a.open("worker", millis(10_000)).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let leader = cluster.leader();
    cluster.kill(leader);
    let held = [(handle.key.clone(), handle.token)];
    for _ in 0..5 {
        let kept =
            in_the_end(|| a.backend.sessions.keep_alive(&session.id, &held, soon(&a, 2_000))).await;
        assert_eq!(kept.expect("open").lost, []);
    }
    cluster.restart(leader);
    let renewed =
        in_the_end(|| a.backend.locks.extend(&handle.key, handle.token, soon(&a, 2_000))).await;
    assert_eq!(renewed.expect("held").token, handle.token);
}

/// One member of three is dead: the first shot of every call succeeds. One stands still: writes that
/// were sent to it are of unknown outcome, and then it is left alone.
async fn a_dead_member_costs_nothing_and_a_paused_one_next_to_nothing(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let follower = (cluster.leader() + 1) % 3;
    let callers = [caller(&cluster).await, caller(&cluster).await, caller(&cluster).await];
    // Each has spoken to somebody; whoever it is may die now.
    for (n, a) in callers.iter().enumerate() {
        let warm = a.take(&key(&format!("warm{n}")), &private("worker")).await;
        assert!(a.release(&warm).await);
    }
    cluster.kill(follower);
    for (n, a) in callers.iter().enumerate() {
        let mut failed = 0;
        for round in 0..10 {
            let key = key(&format!("dead{n}/{round}"));
            let shot = a.insert(&key, &private("worker"), dlock_conformance::kit::attempt()).await;
            failed += u32::from(shot.is_err());
        }
        // A connection that breaks under a call leaves that one unknown.
        assert!(failed <= 1, "{failed} of 10 failed for want of one member");
    }
    cluster.restart(follower);
    cluster.pause(follower);
    for (n, a) in callers.iter().enumerate() {
        let mut failed = 0;
        for round in 0..10 {
            let key = key(&format!("paused{n}/{round}"));
            let request = dlock_ports::InsertRequest {
                key,
                holder: private("worker"),
                attempt: dlock_conformance::kit::attempt(),
                intent: dlock_ports::Intent::Acquire,
            };
            let shot = a.backend.locks.try_insert(request, soon(a, 2_000)).await;
            failed += u32::from(shot.is_err());
        }
        assert!(failed <= 2, "{failed} of 10 failed for want of one member");
    }
    cluster.resume(follower);
}

/// C05: the member that a watch hangs on stands still, and the lock is released at another.
async fn c05_a_paused_member_keeps_no_waiter_asleep(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let b = caller(&cluster).await;
    for round in 0..3 {
        // Whichever member the watch hangs on, it is paused in one of the rounds.
        let leader = cluster.leader();
        let paused = (leader + 1 + round % 2) % 3;
        let a = caller(&cluster).await;
        let handle = a.take(&key("k"), &private_for("holder", millis(600_000))).await;
        let since = b.meet(&key("k"), &private("waiter")).await;
        let waiter = b.backend.waiter.clone().unwrap();
        let waiting = {
            let (waiter, since) = (waiter.clone(), since.clone());
            let by = Deadline::at(b.now().after(Duration::from_secs(60)));
            tokio::spawn(async move { waiter.await_release(&key("k"), &since, by).await })
        };
        until("it waits", || waiter.waiters(&key("k")) == 1).await;
        if round < 2 {
            cluster.pause(paused);
        }
        let release =
            || a.backend.locks.delete_if_owner(&handle.key, handle.token, soon(&a, 2_000));
        in_the_end(release).await;
        // The stated slack: a dead connection is found by its pings, or by the wait's own look.
        let end = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        let end = end.expect("it is not left asleep").unwrap();
        assert!(matches!(end, WaitEnd::Released | WaitEnd::Fallback), "{end:?}");
        if round < 2 {
            cluster.resume(paused);
        }
    }
}

/// C63: the leader stands still for longer than the lease lasts, somebody else gets the lock, and
/// then the old leader goes on. The loser is told, renews nothing, and its writes are refused.
async fn c63_an_old_leader_that_wakes_up_extends_nothing(version: Version) {
    let mut cluster = EtcdCluster::start(version, 3);
    let a = caller(&cluster).await;
    let handle = a.take(&key("k"), &private_for("stale", millis(3_000))).await;
    let mut mark = HighWaterMark::new();
    mark.accept(handle.token).unwrap();
    let old = cluster.leader();
    cluster.pause(old);
    assert_ne!(cluster.leader(), old);
    // A new leader gives every lease its whole lifetime again: late, never early.
    let b = caller(&cluster).await;
    let next = granted_in_the_end(&b).await;
    mark.accept(next.token).unwrap();
    cluster.resume(old);
    assert!(a.now() > handle.client_deadline, "whoever holds to its deadline has stopped");
    let late =
        in_the_end(|| a.backend.locks.extend(&handle.key, handle.token, soon(&a, 3_000))).await;
    assert_eq!(late, None, "the next keep-alive tells the loss, whoever answers it");
    assert!(mark.accept(handle.token).is_err(), "INV-05: a late write is refused");
    let renewed =
        in_the_end(|| b.backend.locks.extend(&next.key, next.token, soon(&b, 3_000))).await;
    assert_eq!(renewed.expect("undisturbed").token, next.token);
}

async fn granted_in_the_end(caller: &Caller) -> dlock_domain::LockHandle {
    for _ in 0..300 {
        let shot = caller
            .insert(
                &key("k"),
                &private_for("next", millis(600_000)),
                dlock_conformance::kit::attempt(),
            )
            .await;
        match shot {
            Ok(dlock_ports::Attempt::Granted(handle)) => return handle,
            Ok(dlock_ports::Attempt::Held(_)) => {}
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the lock never gets free");
}

/// All members die at once and come back: what was answered is there, with its tokens.
async fn a_restart_of_everything_keeps_what_was_granted(version: Version) {
    let mut cluster = EtcdCluster::start(version, 1);
    let a = caller(&cluster).await;
    let handle = a.take(&key("k"), &private_for("worker", millis(60_000))).await;
    cluster.kill(0);
    cluster.restart(0);
    let renewed =
        in_the_end(|| a.backend.locks.extend(&handle.key, handle.token, soon(&a, 2_000))).await;
    assert_eq!(renewed.expect("held").token, handle.token);
    assert!(a.release(&handle).await);
    let next = a.take(&key("k"), &private("next")).await;
    assert!(next.token > handle.token, "INV-04");
}
