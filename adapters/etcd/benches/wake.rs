//! From a release through one server to the wake-up of a waiter at another, while the cluster is
//! written to by others (T-033).
//!
//! Three ways in one run, in turn: this store's one watch; a watch of the waiter's own from the
//! revision after the observed one (trap 17); asking again with the service's backoff. Run it on a
//! quiet machine, with a cluster of its own:
//!
//! ```sh
//! TEST_DLOCK_ETCD_ENDPOINTS=http://127.0.0.1:2379 cargo bench -p dlock-etcd --bench wake
//! ```
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and fails loudly")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use dlock_conformance::{
    SystemClock,
    kit::{Caller, attempt, key, private},
    stores::{etcd_endpoints, fresh_seed},
};
use dlock_domain::{Backoff, Deadline, Moment};
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::SeededEntropy;
use dlock_ports::{Attempt, Clock as _, Entropy as _, WaitEnd};
use etcd_client::{Client, EventType, WatchOptions};

const ROUNDS: usize = 200;
const WRITES_PER_SECOND: u64 = 200;

fn now() -> Moment {
    SystemClock::new().now()
}

async fn caller(prefix: &str, seed: u64) -> Caller {
    let mut config = EtcdConfig::at(etcd_endpoints());
    config.prefix = prefix.to_owned();
    let clock = Arc::new(SystemClock::new());
    let entropy = Arc::new(SeededEntropy::new(seed));
    let store = EtcdStore::connect(config, clock.clone(), entropy).await.unwrap();
    Caller::on(store.backend(), clock, Duration::from_secs(10))
}

/// Writes to a key that nobody watches, so many times a second.
async fn others(prefix: String, stop: Arc<AtomicBool>, done: Arc<AtomicU64>) {
    let mut raw = Client::connect(etcd_endpoints(), None).await.unwrap();
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / WRITES_PER_SECOND));
    while !stop.load(Ordering::Relaxed) {
        ticks.tick().await;
        raw.put(format!("{prefix}-others"), "x", None).await.unwrap();
        done.fetch_add(1, Ordering::Relaxed);
    }
}

fn by() -> Deadline {
    Deadline::at(now().after(Duration::from_secs(30)))
}

/// The store's own way.
async fn by_the_store(waiter: &Caller, sleeping: tokio::sync::oneshot::Sender<()>) -> Moment {
    let since = waiter.meet(&key("k"), &private("waiter")).await;
    let waits = waiter.backend.waiter.clone().unwrap();
    let _ = sleeping.send(());
    assert_eq!(waits.await_release(&key("k"), &since, by()).await, WaitEnd::Released);
    now()
}

/// A watch of the waiter's own, from the revision after the one at which it saw the lock held.
async fn by_own_watch(prefix: &str, sleeping: tokio::sync::oneshot::Sender<()>) -> Moment {
    let mut raw = Client::connect(etcd_endpoints(), None).await.unwrap();
    let at = format!("{prefix}/default/lock/k");
    let observed = raw.get(at.clone(), None).await.unwrap().header().unwrap().revision();
    let _ = sleeping.send(());
    // What a waiter does between its attempt and its watch takes a moment, in which others write.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let options = WatchOptions::new().with_start_revision(observed + 1);
    let mut watch = raw.watch(at, Some(options)).await.unwrap();
    loop {
        let response = watch.message().await.unwrap().unwrap();
        if response.events().iter().any(|event| event.event_type() == EventType::Delete) {
            return now();
        }
    }
}

/// Asking again with backoff.
async fn by_polling(waiter: &Caller, sleeping: tokio::sync::oneshot::Sender<()>) -> Moment {
    let entropy = SeededEntropy::new(7);
    let _ = sleeping.send(());
    for n in 0.. {
        match waiter.insert(&key("k"), &private("waiter"), attempt()).await.unwrap() {
            Attempt::Granted(handle) => {
                let granted = now();
                assert!(waiter.release(&handle).await);
                return granted;
            }
            Attempt::Held(_) => {
                tokio::time::sleep(Backoff::default().delay(n, entropy.jitter())).await;
            }
        }
    }
    unreachable!("it is granted in the end")
}

/// Times of one way, sorted.
async fn measure(way: &'static str, prefix: &str, a: &Caller, b: &Caller) -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let handle = a.take(&key("k"), &private("holder")).await;
        let (sleeping, asleep) = tokio::sync::oneshot::channel();
        let (waiter, prefix) = (b.clone(), prefix.to_owned());
        let waiting = tokio::spawn(async move {
            match way {
                "store" => by_the_store(&waiter, sleeping).await,
                "own watch" => by_own_watch(&prefix, sleeping).await,
                _ => by_polling(&waiter, sleeping).await,
            }
        });
        asleep.await.unwrap();
        // Long enough to be asleep, short enough to be soon.
        tokio::time::sleep(Duration::from_millis(15)).await;
        let released = now();
        assert!(a.release(&handle).await);
        times.push(waiting.await.unwrap().since(released));
    }
    times.sort_unstable();
    times
}

#[tokio::main]
async fn main() {
    let seed = fresh_seed();
    let prefix = format!("/bench/{seed:016x}");
    let (a, b) = (caller(&prefix, seed).await, caller(&prefix, seed + 1).await);
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let writing = tokio::spawn(others(prefix.clone(), Arc::clone(&stop), Arc::clone(&written)));
    let began = now();
    println!("release to wake-up at another server, {ROUNDS} rounds each");
    println!("{:<34} {:>9} {:>9} {:>9}", "", "median", "p90", "max");
    for (way, name) in [
        ("store", "this store's one watch"),
        ("own watch", "a watch of one's own from R+1"),
        ("polling", "asking again with backoff"),
    ] {
        let times = measure(way, &prefix, &a, &b).await;
        let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
        let max = times.last().copied().unwrap_or_default();
        println!("{name:<34} {:>9.2?} {:>9.2?} {max:>9.2?}", at(50), at(90));
    }
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    let seconds = now().since(began).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let rate = written.load(Ordering::Relaxed) as f64 / seconds;
    println!("others wrote {rate:.0} times a second meanwhile");
}
