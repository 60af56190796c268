//! The blocking flavour, from threads that have no runtime.

use std::sync::mpsc;

use dlock_domain::ErrorKind;

use super::*;
use crate::guard::blocking;

/// Locks on a private runtime, with the clock that moves them and a store that outlives them.
fn start() -> (ManualClock, dlock_memory::MemoryStore, blocking::Locks) {
    let clock = ManualClock::new();
    let entropy = Arc::new(SeededEntropy::new(5));
    let store = dlock_memory::MemoryStore::new(Arc::new(clock.clone()), entropy);
    let locks = on(&clock, &store);
    (clock, store, locks)
}

fn on(clock: &ManualClock, store: &dlock_memory::MemoryStore) -> blocking::Locks {
    let (clock, backend) = (Arc::new(clock.clone()), store.backend());
    blocking::Locks::start(move || {
        let entropy = Arc::new(SeededEntropy::new(9));
        let service =
            Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
        Locks::builder(service, clock, entropy).ttl(TTL).build().unwrap()
    })
    .unwrap()
}

#[test]
fn a_lock_from_a_plain_thread() {
    let (_clock, _store, locks) = start();
    let lock = locks.lock("k").owner("me").wait(TTL).acquire().unwrap();
    assert!(lock.is_held());
    assert_eq!((lock.remaining(), lock.key()), (RELIABLE, &key("k")));
    let other = locks.clone();
    let refused = std::thread::spawn(move || other.lock("k").acquire()).join().unwrap();
    assert!(matches!(refused, Err(AcquireError::NotGranted { holder: Some(_) })));
    let (token, cancelled) = (lock.token(), lock.cancellation());
    lock.release().unwrap();
    assert!(cancelled.is_cancelled());
    let newer = locks.lock("k").with_lock(|token, told| (token, told.is_cancelled())).unwrap();
    assert!(newer.0 > token && !newer.1);
}

#[test]
fn c10_and_c12_loss_is_seen_by_a_thread_that_was_paused_and_by_one_that_waits() {
    let (clock, _store, locks) = start();
    let lock = locks.lock("k").acquire().unwrap();
    clock.advance(TTL * 3);
    assert!(!lock.is_held());
    let loss = lock.lost(Duration::MAX).unwrap().unwrap();
    assert_eq!(loss.reason, crate::keeper::LossReason::DeadlinePassed);
    assert!(matches!(lock.release(), Err(ReleaseError::Lost)));
    let lock = locks.lock("k").acquire().unwrap();
    assert_eq!(lock.lost(Duration::ZERO).unwrap(), None);
}

#[test]
fn work_on_a_thread_is_told_and_its_value_comes_back() {
    let (clock, _store, locks) = start();
    let outcome = locks.lock("k").with_lock(|_, told| {
        let (done, wait) = mpsc::channel();
        let (told, clock) = (told.clone(), clock.clone());
        // A sleep longer than the lease, as this thread's work would see it.
        std::thread::spawn(move || {
            clock.advance(TTL * 2);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(told.cancelled());
            done.send(()).unwrap();
        });
        wait.recv().unwrap();
        "partly"
    });
    let error = outcome.unwrap_err();
    assert!(matches!(error, WithLockError::Stopped { .. }), "{error:?}");
    assert_eq!(error.into_value(), Some("partly"));
}

#[test]
fn c16_a_panic_of_the_work_frees_the_lock() {
    let (_clock, _store, locks) = start();
    let other = locks.clone();
    let died = std::thread::spawn(move || {
        let _: Result<(), _> = other.lock("k").with_lock(|_, _| panic!("the work went wrong"));
    });
    assert!(died.join().is_err());
    locks.lock("k").wait(TTL).acquire().unwrap().release().unwrap();
}

#[test]
fn the_last_drop_waits_until_what_was_held_is_free() {
    let (clock, store, locks) = start();
    let lock = locks.lock("k").acquire().unwrap();
    drop(locks);
    assert!(lock.is_held(), "the guard keeps the runtime");
    drop(lock);
    on(&clock, &store).lock("k").acquire().unwrap().release().unwrap();
}

#[test]
fn inside_a_runtime_it_says_so_and_leaves_nothing() {
    let (_clock, _store, locks) = start();
    let lock = locks.lock("mine").acquire().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let Err(AcquireError::Failed(error)) = locks.lock("k").acquire() else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.detail().contains("async runtime"));
        assert_eq!(lock.lost(TTL).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(lock.is_held(), "what does not block works");
        assert!(matches!(lock.release(), Err(ReleaseError::Failed(_))));
    });
    // Not asked, and the release was begun all the same.
    for name in ["k", "mine"] {
        locks.lock(name).wait(TTL).acquire().unwrap().release().unwrap();
    }
}

#[test]
fn a_maker_that_panics_is_an_error() {
    let error = blocking::Locks::start(|| panic!("no service today")).unwrap_err();
    assert!(error.to_string().contains("panicked"));
}
