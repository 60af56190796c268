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
    c64_a_second_restore_is_noticed_too_and_a_small_number_is_lifted
    c64_a_raise_through_a_new_server_opens_the_old_ones
    after_a_restore_waiters_neither_spin_nor_sleep
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
    let written = || {
        let text = std::fs::read_to_string(&state_file).unwrap();
        let first = text.lines().next().unwrap().strip_prefix("revision ").unwrap().to_owned();
        first.parse::<u64>().unwrap()
    };
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

/// Kills the member, puts it back to the backup and starts it again.
fn set_back(cluster: &mut EtcdCluster, backup: &dlock_servers::Backup) {
    cluster.kill(0);
    cluster.put_back(0, backup);
    cluster.restart(0);
}

fn backed_up(cluster: &mut EtcdCluster) -> dlock_servers::Backup {
    cluster.kill(0);
    let backup = cluster.back_up(0);
    cluster.restart(0);
    backup
}

async fn raise(caller: &Caller, at_least: u64) -> TokenFloor {
    let floors = caller.backend.floors.clone().unwrap();
    let (namespace, floor) = (Namespace::default(), TokenFloor::new(at_least).unwrap());
    in_the_end(|| floors.raise(&namespace, floor, caller.by())).await.floor
}

/// Set back, raised, granted in, and set back to a moment after that raise; then to one before it. A
/// number that is too small is lifted to what this server knows.
async fn c64_a_second_restore_is_noticed_too_and_a_small_number_is_lifted(version: Version) {
    let mut cluster = EtcdCluster::start(version, 1);
    let a = caller(&cluster).await;
    next(&a).await;
    let first = backed_up(&mut cluster);
    for _ in 0..20 {
        next(&a).await;
    }
    set_back(&mut cluster, &first);
    assert_refuses(&a).await;
    raise(&a, 1_000_000).await;
    let mut highest = next(&a).await;
    let second = backed_up(&mut cluster);
    for _ in 0..10 {
        highest = next(&a).await;
    }
    for backup in [&second, &first] {
        set_back(&mut cluster, backup);
        assert_refuses(&a).await;
        let floor = raise(&a, 1).await;
        assert!(floor.get() >= highest.get(), "a number that is too small is lifted");
        let token = next(&a).await;
        assert!(token > highest, "INV-04: {token} after {highest}");
        highest = token;
    }
}

/// The natural order: restore, raise through a server that was started for it, and then the old ones,
/// which had seen more, have their first look.
async fn c64_a_raise_through_a_new_server_opens_the_old_ones(version: Version) {
    let mut cluster = EtcdCluster::start(version, 1);
    let (one, two) = (caller(&cluster).await, caller(&cluster).await);
    next(&one).await;
    let backup = backed_up(&mut cluster);
    let mut highest = next(&one).await;
    for _ in 0..10 {
        highest = next(&two).await;
    }
    set_back(&mut cluster, &backup);
    let new = caller(&cluster).await;
    raise(&new, highest.get() + 1_000).await;
    for caller in [&new, &one, &two] {
        let token = next(caller).await;
        assert!(token > highest, "INV-04");
        highest = token;
    }
}

/// A waiter of the time before is sent to poll, not told again and again of a delete that is no more;
/// and the next release is told.
async fn after_a_restore_waiters_neither_spin_nor_sleep(version: Version) {
    use dlock_ports::WaitEnd;

    let mut cluster = EtcdCluster::start(version, 1);
    let (a, b) = (caller(&cluster).await, caller(&cluster).await);
    next(&a).await;
    let backup = backed_up(&mut cluster);
    // A delete that the watch of b remembers.
    let waiter = b.backend.waiter.clone().unwrap();
    let waiting = |since: dlock_ports::Observed| {
        let (waiter, by) =
            (waiter.clone(), dlock_domain::Deadline::at(b.now().after(Duration::from_secs(60))));
        tokio::spawn(async move { waiter.await_release(&key("k"), &since, by).await })
    };
    for _ in 0..3 {
        let handle = a.take(&key("k"), &private("holder")).await;
        let since = b.meet(&key("k"), &private("waiter")).await;
        let told = waiting(since);
        assert!(a.release(&handle).await);
        assert_eq!(told.await.unwrap(), WaitEnd::Released);
    }
    set_back(&mut cluster, &backup);
    assert_refuses(&a).await;
    assert_refuses(&b).await;
    raise(&a, 1_000_000).await;
    next(&b).await;
    let (mut released, mut others) = (0, 0);
    for _ in 0..20 {
        let handle = a.take(&key("k"), &private("holder")).await;
        let since = b.meet(&key("k"), &private("waiter")).await;
        let told = waiting(since);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let early = told.is_finished();
        assert!(a.release(&handle).await);
        let end = tokio::time::timeout(Duration::from_secs(8), told).await;
        let end = end.expect("woken before it looks for itself").unwrap();
        assert!(!(early && end == WaitEnd::Released), "told of what did not happen");
        if end == WaitEnd::Released {
            released += 1;
        } else {
            others += 1;
        }
    }
    assert!(released > others, "{released} told, {others} sent to poll");
}
