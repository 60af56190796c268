//! T-033: being told of a release, from the revision that a failed attempt observed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use dlock_conformance::kit::{Caller, key, millis, private, private_for, settle, until};
use dlock_domain::Deadline;
use dlock_faults::Proxy;
use dlock_ports::{Observed, ReleaseWaiter, WaitEnd};
use etcd_client::{CompactionOptions, WatchOptions};
use tokio::task::JoinHandle;

use crate::{Place, caller, proxy};

fn waiter(caller: &Caller) -> Arc<dyn ReleaseWaiter> {
    caller.backend.waiter.clone().unwrap()
}

fn waiting(caller: &Caller, since: &Observed) -> JoinHandle<WaitEnd> {
    let (waiter, since) = (waiter(caller), since.clone());
    let by = Deadline::at(caller.now().after(Duration::from_secs(60)));
    tokio::spawn(async move { waiter.await_release(&key("k"), &since, by).await })
}

/// The load-bearing one. The delete provably precedes the watch: it has been answered before the
/// first wait of this store begins, and a store without waiters has no watch.
///
/// It fails if the wait starts at the current revision: the naive watch below, which does, is told
/// of nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_a_delete_before_the_watch_is_not_missed() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    a.take(&key("k"), &private("holder")).await;
    let since = b.meet(&key("k"), &private("waiter")).await;
    place.delete(&key("k")).await;

    let at = place.at(&key("k"));
    let mut naive = place.raw.watch(at, Some(WatchOptions::new())).await.unwrap();
    assert!(naive.message().await.unwrap().unwrap().created());
    // Long before the wait would look for itself.
    let end = tokio::time::timeout(Duration::from_secs(4), waiting(&b, &since)).await;
    assert_eq!(end.expect("well inside the deadline").unwrap(), WaitEnd::Released);
    let told = tokio::time::timeout(Duration::from_millis(500), naive.message()).await;
    assert!(told.is_err(), "a watch from now on sleeps until its deadline: {told:?}");
}

/// Twenty times: the waiter is woken before a pause of the shortest backoff, begun at the release,
/// is over. Most of the times is enough: the machine may be busy with others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_a_release_wakes_faster_than_the_backoff_floor() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    // `lock.backoff.floor` (C5).
    let floor = Duration::from_millis(20);
    let mut faster = 0;
    for _ in 0..20 {
        let handle = a.take(&key("k"), &private("holder")).await;
        let since = b.meet(&key("k"), &private("waiter")).await;
        let mut waiting = waiting(&b, &since);
        until("it waits", || waiter(&b).waiters(&key("k")) == 1).await;
        settle().await;
        assert!(!waiting.is_finished());
        assert!(a.release(&handle).await);
        tokio::select! {
            biased;
            end = &mut waiting => {
                assert_eq!(end.unwrap(), WaitEnd::Released);
                faster += 1;
            }
            () = tokio::time::sleep(floor) => assert_eq!(waiting.await.unwrap(), WaitEnd::Released),
        }
    }
    assert!(faster > 10, "{faster} of 20");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_a_renew_does_not_wake() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let handle = a.take(&key("k"), &private_for("holder", millis(60_000))).await;
    let since = b.meet(&key("k"), &private("waiter")).await;
    let waiting = waiting(&b, &since);
    until("it waits", || waiter(&b).waiters(&key("k")) == 1).await;
    for _ in 0..2 {
        a.extend(&handle).await.unwrap();
        settle().await;
        assert!(!waiting.is_finished());
    }
    assert!(a.release(&handle).await);
    assert_eq!(waiting.await.unwrap(), WaitEnd::Released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_the_deadline_ends_the_wait() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    a.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    let by = Deadline::at(a.now().after(Duration::from_millis(400)));
    let end = waiter(&a).await_release(&key("k"), &since, by).await;
    assert_eq!(end, WaitEnd::Deadline);
    assert!(by.is_past(a.now()), "not before its time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_interruption_leaves_nothing() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = b.meet(&key("k"), &private("waiter")).await;
    let waiting = waiting(&b, &since);
    until("it waits", || waiter(&b).waiters(&key("k")) == 1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    assert_eq!(waiter(&b).waiters(&key("k")), 0);
    assert!(a.release(&handle).await);
    settle().await;
    assert!(place.found(&key("k")).await.is_none(), "nobody was granted anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_waiters_are_counted_while_they_wait() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let handle = a.take(&key("k"), &private("holder")).await;
    let since = b.meet(&key("k"), &private("waiter")).await;
    let tasks: Vec<_> = (0..3).map(|_| waiting(&b, &since)).collect();
    until("they wait", || waiter(&b).waiters(&key("k")) == 3).await;
    assert_eq!(b.read(&key("k")).await.unwrap().waiter_count, 3);
    assert!(a.release(&handle).await);
    for task in tasks {
        assert_eq!(task.await.unwrap(), WaitEnd::Released);
    }
    assert_eq!(waiter(&b).waiters(&key("k")), 0);
}

/// While the watch is cut off the history that it has not seen is compacted: what was missed can
/// never be told, so those who wait are sent to poll, and the next wait works again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t033_compaction_falls_back() {
    let mut place = Place::new().await;
    let proxy = proxy();
    let (a, b) = (place.caller().await, place.caller_through(&proxy).await);
    let handle = a.take(&key("k"), &private_for("holder", millis(600_000))).await;
    let since = b.meet(&key("k"), &private("waiter")).await;
    let waiting = waiting(&b, &since);
    woken_once(&mut place, &b).await;
    proxy.refuse().await.unwrap();
    proxy.reset_all();
    for _ in 0..3 {
        place.write_elsewhere().await;
    }
    let now = place.raw.get("x", None).await.unwrap().header().unwrap().revision();
    place.raw.compact(now, Some(CompactionOptions::new().with_physical())).await.unwrap();
    heal(&proxy).await;
    let end = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert_eq!(end.expect("it is not left asleep").unwrap(), WaitEnd::Fallback);
    assert!(a.release(&handle).await);
}

/// C04 in small: the stream breaks again and again, and no release is missed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c04_a_broken_stream_misses_nothing() {
    let mut place = Place::new().await;
    let proxy = proxy();
    let (a, b) = (place.caller().await, place.caller_through(&proxy).await);
    let mut released = 0;
    for round in 0..10 {
        let handle = a.take(&key("k"), &private("holder")).await;
        let since = caller_meet(&b).await;
        let waiting = waiting(&b, &since);
        until("it waits", || waiter(&b).waiters(&key("k")) == 1).await;
        if round % 2 == 0 {
            proxy.reset_all();
        }
        assert!(a.release(&handle).await);
        if round % 2 == 1 {
            proxy.reset_all();
        }
        let end = tokio::time::timeout(Duration::from_secs(30), waiting).await;
        let end = end.expect("no release is missed").unwrap();
        assert!(matches!(end, WaitEnd::Released | WaitEnd::Fallback), "{end:?}");
        released += u32::from(end == WaitEnd::Released);
        assert!(place.found(&key("k")).await.is_none());
    }
    assert!(released > 5, "told of {released} of 10, sent to poll for the rest");
}

/// C04: the stream is reset fifty times while twenty wait for their turns, each of them again and
/// again. Everybody gets all turns, and nobody asks in a hot loop meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c04_fifty_resets_under_twenty_waiters() {
    const TURNS: u32 = 4;
    let mut place = Place::new().await;
    let proxy = Arc::new(proxy());
    let b = place.caller_through(&proxy).await;
    let shots = Arc::new(AtomicU32::new(0));
    let mut waiters = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (b, shots) = (b.clone(), Arc::clone(&shots));
        waiters.spawn(async move {
            let mut turns = 0;
            while turns < TURNS {
                shots.fetch_add(1, Ordering::Relaxed);
                let named = dlock_conformance::kit::attempt();
                match b.insert(&key("k"), &private_for("waiter", millis(600_000)), named).await {
                    Ok(dlock_ports::Attempt::Granted(handle)) => {
                        turns += 1;
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        released(&b, &handle).await;
                    }
                    Ok(dlock_ports::Attempt::Held(since)) => {
                        if waiting(&b, &since).await.unwrap() == WaitEnd::Fallback {
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                    // Nobody knows: settled, as the service does, before anything else is done.
                    Err(error) => {
                        assert!(error.is_transient(), "{error:?}");
                        let holder = private_for("waiter", millis(600_000));
                        while b.try_forget(&key("k"), &holder, named).await.is_err() {
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                }
            }
        });
    }
    let resets = tokio::spawn({
        let proxy = Arc::clone(&proxy);
        async move {
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                proxy.reset_all();
            }
        }
    });
    let all = async { while waiters.join_next().await.is_some_and(|done| done.is_ok()) {} };
    let done = tokio::time::timeout(Duration::from_secs(90), all).await;
    assert!(done.is_ok(), "somebody sleeps beside a free lock");
    resets.await.unwrap();
    // Each release wakes all who wait, each reset may send all of them to poll for a while.
    let (grants, made) = (20 * TURNS, shots.load(Ordering::Relaxed));
    assert!(made < 20 * (grants + 50) * 3, "{made} shots for {grants} grants");
}

/// Gives a lock back, however often the connection breaks meanwhile.
async fn released(caller: &Caller, handle: &dlock_domain::LockHandle) {
    for _ in 0..300 {
        let locks = &caller.backend.locks;
        match locks.delete_if_owner(&handle.key, handle.token, caller.by()).await {
            Ok(_) => return,
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the cluster cannot be reached any more");
}

/// One revision may delete more than a message holds (trap 18, C68).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_18_one_revision_that_deletes_thousands_wakes_all() {
    let mut place = Place::new().await;
    let store = place.store().await;
    let (a, b) = (caller(&store), place.caller().await);
    let session = a.open("holder", millis(600_000)).await;
    // More than the four mebibytes of a message in names alone.
    let names: Vec<String> = (0..40_000).map(|n| format!("{n:0>120}")).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for some in names.chunks(400) {
        let (a, some) = (a.clone(), some.to_vec());
        let holder = dlock_conformance::kit::of(&session);
        tasks.spawn(async move {
            for name in some {
                a.take(&key(&name), &holder).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    // The naive watch, which asks for no fragments: the one message is too long, now and after every
    // resumption.
    let revision = place.raw.get("x", None).await.unwrap().header().unwrap().revision();
    let mut waits = Vec::new();
    for name in names.iter().step_by(400) {
        let since = b.meet(&key(name), &private("waiter")).await;
        let (waiter, key) = (waiter(&b), key(name));
        let by = Deadline::at(b.now().after(Duration::from_secs(60)));
        waits.push(tokio::spawn(async move { waiter.await_release(&key, &since, by).await }));
    }
    assert!(a.close(&session.id).await);
    for _ in 0..2 {
        let options = WatchOptions::new().with_prefix().with_start_revision(revision + 1);
        let mut naive = place.raw.watch(place.prefix.clone(), Some(options)).await.unwrap();
        let broken = async {
            loop {
                match naive.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return,
                }
            }
        };
        let broken = tokio::time::timeout(Duration::from_secs(10), broken).await;
        assert!(broken.is_ok(), "a watch without fragments takes it in: nothing is shown");
    }
    for wait in waits {
        // Long before the wait would look for itself.
        let end = tokio::time::timeout(Duration::from_secs(8), wait).await;
        assert_eq!(end.expect("woken").unwrap(), WaitEnd::Released);
    }
}

/// Waits until the watch of this caller's store is up: a wait of its own was woken by it.
async fn woken_once(place: &mut Place, caller: &Caller) {
    let helper = place.caller().await;
    let handle = helper.take(&key("other"), &private("holder")).await;
    let since = caller.meet(&key("other"), &private("waiter")).await;
    let by = Deadline::at(caller.now().after(Duration::from_secs(30)));
    let waiter = waiter(caller);
    let waiting = tokio::spawn({
        let waiter = Arc::clone(&waiter);
        async move { waiter.await_release(&key("other"), &since, by).await }
    });
    until("it waits", || waiter.waiters(&key("other")) == 1).await;
    assert!(helper.release(&handle).await);
    assert_eq!(waiting.await.unwrap(), WaitEnd::Released);
}

/// A place to wait from, however long it takes: the connections were broken.
async fn caller_meet(caller: &Caller) -> Observed {
    for _ in 0..200 {
        let shot =
            caller.insert(&key("k"), &private("waiter"), dlock_conformance::kit::attempt()).await;
        match shot {
            Ok(dlock_ports::Attempt::Held(since)) => return since,
            Ok(other) => panic!("held by a, got {other:?}"),
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the cluster cannot be reached any more");
}

async fn heal(proxy: &Proxy) {
    proxy.heal().await.unwrap();
}
