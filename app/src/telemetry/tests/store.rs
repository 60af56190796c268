//! Errors of the store, by kind.

use std::time::Duration;

use dlock_domain::{ErrorKind, Invariant, LockError, OwnerId, SessionId, Ttl};
use dlock_ports::LockService as _;

use super::bench::{observe, private};
use crate::telemetry::table;

#[test]
fn c4_every_kind_of_store_error_is_counted_and_starts_at_zero() {
    let kinds = [
        ErrorKind::Contention,
        ErrorKind::NotLeader,
        ErrorKind::Draining,
        ErrorKind::LockLost,
        ErrorKind::SessionExpired,
        ErrorKind::InvalidArgument { field: "name" },
        ErrorKind::Limit { limit: "lock.max_locks" },
        ErrorKind::Denied,
        ErrorKind::Unsupported,
        ErrorKind::InvariantViolated(Invariant::TokensRise),
    ];
    let quiet = observe(|_| async {});
    let seen = observe(|bench| async move {
        for kind in kinds {
            bench.store.fail(LockError::new(kind, "told to"));
            bench.ask("a", private("x"), Duration::ZERO).await.unwrap_err();
        }
    });
    for kind in kinds.map(ErrorKind::name) {
        assert_eq!(quiet.counter(table::STORE_ERRORS, "kind", kind), Some(0), "{kind}");
        assert_eq!(seen.counter(table::STORE_ERRORS, "kind", kind), Some(1), "{kind}");
    }
    assert_eq!(quiet.counter(table::INCIDENTS, "backend", "memory"), Some(0));
    assert_eq!(seen.counter(table::INCIDENTS, "backend", "memory"), Some(1));
    assert_eq!(quiet.gauge(table::BUILD_INFO), Some(1.0));
}

#[test]
fn what_the_store_answers_is_no_error_of_its_own() {
    let seen = observe(|bench| async move {
        let owner = OwnerId::new("x").unwrap();
        bench.metered.open_session(owner, Ttl::from_millis(1_000).unwrap()).await.unwrap();
        // Gone is an answer, not a failure.
        bench.metered.keep_session(&SessionId::from_bits(1), &[]).await.unwrap_err();
        bench.metered.look_session(&SessionId::from_bits(1)).await.unwrap_err();
    });
    for kind in table::ERROR_KINDS {
        assert_eq!(seen.counter(table::STORE_ERRORS, "kind", kind), Some(0), "{kind}");
    }
}
