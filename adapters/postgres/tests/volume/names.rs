//! Names that are used once and never again.
//!
//! `TEST_DLOCK_POSTGRES_NAMES` says how many; a million takes some minutes.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use dlock_domain::{ErrorKind, Invariant, Ttl};
use dlock_ports::{Attempt, Holder, InsertRequest, Intent};

use crate::kit::{Place, key, soon, try_once};

fn how_many() -> usize {
    std::env::var("TEST_DLOCK_POSTGRES_NAMES").ok().map_or(2_000, |text| text.parse().unwrap())
}

/// The rows go, what they knew stays: tokens still rise, and a sequence that goes back is noticed
/// though no row remembers (INV-04).
#[tokio::test(flavor = "multi_thread")]
async fn names_used_once_are_forgotten_and_tokens_still_rise() {
    let (place, names) = (Place::new().await, how_many());
    let backend = Arc::new(place.store(Duration::ZERO).await);
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..12 {
        let backend = Arc::clone(&backend);
        workers.spawn(async move {
            let mut highest = 0;
            for n in (worker..names).step_by(12) {
                let key = key(&format!("job/{n:09}"));
                let handle = try_once(&backend, &key, Ttl::from_millis(60_000).unwrap()).await;
                let token = handle.expect("nobody else wants it").token;
                assert!(backend.locks.delete_if_owner(&key, token, soon()).await.unwrap());
                highest = highest.max(token.get());
            }
            highest
        });
    }
    let mut highest = 0;
    while let Some(done) = workers.join_next().await {
        highest = highest.max(done.unwrap());
    }
    let held = key("held");
    let keeper = try_once(&backend, &held, Ttl::from_millis(600_000).unwrap()).await.unwrap();
    let before = place.number("SELECT count(*) FROM dlock_locks").await;
    // As the server does it: so many at a time.
    let rounds = names / 1_000 + 2;
    for _ in 0..rounds {
        backend.locks.reap_expired(1_000, soon()).await.unwrap();
    }
    let after = place.number("SELECT count(*) FROM dlock_locks").await;
    let sessions = place.number("SELECT count(*) FROM dlock_sessions").await;
    println!("{before} rows for {names} names, {after} after {rounds} rounds of 1,000");
    assert_eq!((after, sessions), (1, 1), "what is held stays, and nothing else");
    assert!(backend.locks.extend(&held, keeper.token, soon()).await.unwrap().is_some());
    let ttl = Ttl::from_millis(60_000).unwrap();
    let again = try_once(&backend, &key("job/000000000"), ttl).await.unwrap();
    assert!(again.token.get() > highest, "{} after {highest}", again.token);

    // No row knows what the purged ones were granted; the floor does.
    place.execute("SELECT setval('dlock_fencing_token_seq', 1)").await;
    let request = InsertRequest {
        key: key("job/000000001"),
        holder: Holder::Private { owner: again.owner.clone(), ttl },
        attempt: dlock_domain::AttemptId::from_bits(7),
        intent: Intent::Acquire,
    };
    let refused = backend.locks.try_insert(request, soon()).await;
    let refused = refused.map(|answer| matches!(answer, Attempt::Granted(_))).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvariantViolated(Invariant::TokensRise));
    place.finish().await;
}

/// The numbers that were purged are one number: nothing is kept per name.
#[tokio::test(flavor = "multi_thread")]
async fn purging_takes_no_more_than_it_is_asked_for() {
    let place = Place::new().await;
    let backend = place.store(Duration::ZERO).await;
    let mut tokens = BTreeSet::new();
    for n in 0..10 {
        let key = key(&format!("job/{n}"));
        let handle = try_once(&backend, &key, Ttl::from_millis(60_000).unwrap()).await.unwrap();
        assert!(backend.locks.delete_if_owner(&key, handle.token, soon()).await.unwrap());
        tokens.insert(i64::try_from(handle.token.get()).unwrap());
    }
    for left in [7, 4, 1, 0] {
        backend.locks.reap_expired(3, soon()).await.unwrap();
        assert_eq!(place.number("SELECT count(*) FROM dlock_locks").await, left);
    }
    assert_eq!(place.number("SELECT floor FROM dlock_meta").await, *tokens.last().unwrap());
    place.finish().await;
}
