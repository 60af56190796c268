//! Every outcome of every timed call, once.

use std::time::Duration;

use dlock_domain::{ErrorKind, FencingToken, Invariant, LockError, SessionId};
use dlock_ports::{AcquireRequest, LockService as _, SessionRef};

use super::bench::{key, observe, once, private};
use crate::telemetry::outcome::{AcquireOutcome, ReleaseOutcome, RenewOutcome, RevokeOutcome};
use crate::telemetry::table;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn c4_every_outcome_of_an_acquire_is_counted_once() {
    let seen = observe(|bench| async move {
        // Granted, and held for whoever does not wait.
        bench.hold("a", private("holder")).await;
        bench.ask("a", private("other"), Duration::ZERO).await.unwrap();
        // Waiting to the end; meanwhile there is no room for a second one who would wait.
        let waiting = tokio::spawn({
            let bench = bench.clone();
            async move { bench.ask("a", private("patient"), SECOND).await }
        });
        bench.until_somebody_waits("a").await;
        bench.ask("a", private("late"), SECOND).await.unwrap_err();
        bench.clock.advance(SECOND);
        waiting.await.unwrap().unwrap();

        let nobody = SessionRef::Id(SessionId::from_bits(1));
        bench.ask("a", nobody, Duration::ZERO).await.unwrap_err();
        bench.ask("a", private("x"), AcquireRequest::MAX_WAIT + SECOND).await.unwrap_err();
        let incident = ErrorKind::InvariantViolated(Invariant::TokensRise);
        for kind in [ErrorKind::NotLeader, ErrorKind::Denied, incident] {
            bench.store.fail(LockError::new(kind, "told to"));
            bench.ask("b", private("x"), Duration::ZERO).await.unwrap_err();
        }
    });
    let counts = seen.counts(table::ACQUIRE, AcquireOutcome::WORDS);
    assert_eq!(counts, once(AcquireOutcome::WORDS));
    assert_eq!(seen.samples(table::ACQUIRE, "timeout"), [1.0], "the waiting is part of it");
    assert_eq!(seen.samples(table::ACQUIRE, "granted"), [0.0]);
    assert_eq!(seen.counter(table::INCIDENTS, "backend", "memory"), Some(1));
}

#[test]
fn an_acquire_that_never_waits_is_held_whatever_it_says() {
    let seen = observe(|bench| async move {
        bench.hold("a", private("holder")).await;
        let (key, session) = (key("a"), private("other"));
        let request = AcquireRequest { key, session, attempt: None, max_wait: SECOND };
        bench.metered.try_acquire(request).await.unwrap();
    });
    assert_eq!(seen.samples(table::ACQUIRE, "held"), [0.0]);
    assert_eq!(seen.samples(table::ACQUIRE, "timeout"), [0.0; 0]);
}

#[test]
fn a_call_that_was_dropped_counts_nowhere() {
    let seen = observe(|bench| async move {
        bench.hold("a", private("holder")).await;
        let waiting = tokio::spawn({
            let bench = bench.clone();
            async move { bench.ask("a", private("impatient"), SECOND).await }
        });
        bench.until_somebody_waits("a").await;
        waiting.abort();
        bench.until_nobody_waits().await;
    });
    let counts = seen.counts(table::ACQUIRE, AcquireOutcome::WORDS);
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<usize>(), 1, "the holder's");
    assert_eq!(seen.samples(table::WAIT, "interrupted").len(), 1);
}

#[test]
fn c4_every_outcome_of_a_renewal_is_counted_once_and_a_refusal_not() {
    let seen = observe(|bench| async move {
        let held = bench.hold("a", private("holder")).await;
        bench.metered.renew(&held.key, held.token, &held.session).await.unwrap();
        let stranger = SessionId::from_bits(1);
        let refused = bench.metered.renew(&held.key, held.token, &stranger).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Denied);
        bench.store.fail(LockError::contention("told to"));
        bench.metered.renew(&held.key, held.token, &held.session).await.unwrap_err();
        let other = FencingToken::from_user(4_711).unwrap();
        bench.metered.renew(&held.key, other, &held.session).await.unwrap_err();
    });
    assert_eq!(seen.counts(table::RENEW, RenewOutcome::WORDS), once(RenewOutcome::WORDS));
}

#[test]
fn c4_every_outcome_of_a_release_is_counted_once() {
    let seen = observe(|bench| async move {
        let held = bench.hold("a", private("holder")).await;
        bench.store.fail(LockError::contention("told to"));
        bench.metered.release(&held.key, held.token, &held.session).await.unwrap_err();
        bench.metered.release(&held.key, held.token, &held.session).await.unwrap();
        bench.metered.release(&held.key, held.token, &held.session).await.unwrap();
    });
    assert_eq!(seen.counts(table::RELEASE, ReleaseOutcome::WORDS), once(ReleaseOutcome::WORDS));
}

#[test]
fn a_release_of_anothers_grant_is_not_the_owners() {
    let seen = observe(|bench| async move {
        let held = bench.hold("a", private("holder")).await;
        let stranger = SessionId::from_bits(1);
        bench.metered.release(&held.key, held.token, &stranger).await.unwrap_err();
    });
    assert_eq!(seen.samples(table::RELEASE, "not_owner").len(), 1);
}

#[test]
fn c4_every_outcome_of_a_revocation_is_counted_once() {
    let seen = observe(|bench| async move {
        bench.hold("a", private("holder")).await;
        bench.revoke("a", Some(4_711)).await.unwrap();
        bench.store.fail(LockError::contention("told to"));
        bench.revoke("a", None).await.unwrap_err();
        bench.revoke("a", None).await.unwrap();
        bench.revoke("a", None).await.unwrap();
    });
    assert_eq!(seen.counts(table::REVOKE, RevokeOutcome::WORDS), once(RevokeOutcome::WORDS));
}
