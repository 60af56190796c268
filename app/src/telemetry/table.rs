//! The one table of metrics (C4): a metric that is not in it is not recorded, and a label or a
//! value that is not in it never appears.

use metrics::Unit;

use super::outcome::{AcquireOutcome, ReleaseOutcome, RenewOutcome, RevokeOutcome, WaitOutcome};

/// `lock.acquire`: how long acquires took, their waiting included.
pub const ACQUIRE: &str = "dlock_lock_acquire_seconds";
/// `lock.renew`: how long renewals of one grant took.
pub const RENEW: &str = "dlock_lock_renew_seconds";
/// `lock.release`: how long releases took.
pub const RELEASE: &str = "dlock_lock_release_seconds";
/// `lock.revoke`: how long revocations took.
pub const REVOKE: &str = "dlock_lock_revoke_seconds";
/// `lock.wait`: how long acquires waited between two tries.
pub const WAIT: &str = "dlock_lock_wait_seconds";
/// Grants of this server that it has not seen end.
pub const HELD: &str = "dlock_lock_held";
/// Calls that wait for a lock at this server.
pub const WAITERS: &str = "dlock_lock_waiters";
/// Sessions that this server opened and has not seen end.
pub const SESSIONS: &str = "dlock_sessions";
/// Promises found broken.
pub const INCIDENTS: &str = "dlock_lock_incidents_total";
/// Operations in one commit of the store.
pub const BATCH_SIZE: &str = "dlock_store_batch_size";
/// Errors that the store answered.
pub const STORE_ERRORS: &str = "dlock_store_errors_total";
/// Which program this is.
pub const BUILD_INFO: &str = "dlock_build_info";

/// Every value of the label `kind`: [`ErrorKind::name`](crate::ErrorKind::name).
pub const ERROR_KINDS: &[&str] = &[
    "contention",
    "not-leader",
    "draining",
    "lock-lost",
    "session-expired",
    "invalid-argument",
    "limit",
    "denied",
    "unsupported",
    "invariant-violated",
];

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in Prometheus.
    pub name: &'static str,
    /// What it measures, for people.
    pub help: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// How its values add up.
    pub kind: Kind,
    /// Its labels: all of them are always there.
    pub labels: &'static [Label],
}

/// How the values of a metric add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// A distribution, in buckets with these upper bounds.
    Histogram(&'static [f64]),
}

/// A label and what it may say.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// What it may say.
    pub values: Values,
}

/// What a label may say: always one of few.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// The store's `backend_id`: one per service.
    Backend,
    /// One of these.
    Of(&'static [&'static str]),
}

/// Store calls: from a commit without a disk to the end of a generous call budget.
const CALL_SECONDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Whatever waits for a holder: the same, and on to the longest wait, an hour.
const WAIT_SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 900.0, 3600.0,
];
/// Up to the largest group that the embedded store commits at once.
const BATCH_COUNTS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

const BACKEND: Label = Label { name: "backend", values: Values::Backend };

const fn one_of(name: &'static str, values: &'static [&'static str]) -> Label {
    Label { name, values: Values::Of(values) }
}

const fn seconds(
    name: &'static str,
    help: &'static str,
    buckets: &'static [f64],
    labels: &'static [Label],
) -> Metric {
    Metric { name, help, unit: Unit::Seconds, kind: Kind::Histogram(buckets), labels }
}

const fn count(
    name: &'static str,
    help: &'static str,
    kind: Kind,
    labels: &'static [Label],
) -> Metric {
    Metric { name, help, unit: Unit::Count, kind, labels }
}

/// Every metric that there is.
pub const ALL: &[Metric] = &[
    seconds(
        ACQUIRE,
        "How long acquires took, their waiting included, by outcome.",
        WAIT_SECONDS,
        &[BACKEND, one_of("outcome", AcquireOutcome::WORDS)],
    ),
    seconds(
        RENEW,
        "How long renewals of single grants took, by outcome.",
        CALL_SECONDS,
        &[BACKEND, one_of("outcome", RenewOutcome::WORDS)],
    ),
    seconds(
        RELEASE,
        "How long releases took, by outcome.",
        CALL_SECONDS,
        &[BACKEND, one_of("outcome", ReleaseOutcome::WORDS)],
    ),
    seconds(
        REVOKE,
        "How long revocations took, by outcome.",
        CALL_SECONDS,
        &[BACKEND, one_of("outcome", RevokeOutcome::WORDS)],
    ),
    seconds(
        WAIT,
        "How long acquires waited between two tries, by what ended the wait; fallback: how long \
         until the store could not tell of releases, after which the wait goes on by polling.",
        WAIT_SECONDS,
        &[BACKEND, one_of("outcome", WaitOutcome::WORDS)],
    ),
    count(HELD, "Locks that this server granted and has not seen end.", Kind::Gauge, &[BACKEND]),
    count(WAITERS, "Calls that wait for a lock at this server.", Kind::Gauge, &[BACKEND]),
    count(
        SESSIONS,
        "Sessions that this server opened and has not seen end; those of single locks left out.",
        Kind::Gauge,
        &[BACKEND],
    ),
    count(INCIDENTS, "Promises found broken: look at the log.", Kind::Counter, &[BACKEND]),
    count(
        BATCH_SIZE,
        "Operations in one commit, of a store that groups them.",
        Kind::Histogram(BATCH_COUNTS),
        &[BACKEND],
    ),
    count(
        STORE_ERRORS,
        "Errors that the store answered, by kind.",
        Kind::Counter,
        &[BACKEND, one_of("kind", ERROR_KINDS)],
    ),
    count(
        BUILD_INFO,
        "Always 1: which version serves which store.",
        Kind::Gauge,
        &[BACKEND, one_of("version", &[env!("CARGO_PKG_VERSION")])],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Invariant};

    #[test]
    fn every_kind_of_error_has_its_word() {
        let kinds = [
            ErrorKind::Contention,
            ErrorKind::NotLeader,
            ErrorKind::Draining,
            ErrorKind::LockLost,
            ErrorKind::SessionExpired,
            ErrorKind::InvalidArgument { field: "x" },
            ErrorKind::Limit { limit: "x" },
            ErrorKind::Denied,
            ErrorKind::Unsupported,
            ErrorKind::InvariantViolated(Invariant::TokensRise),
        ];
        assert_eq!(kinds.map(ErrorKind::name), ERROR_KINDS);
    }

    #[test]
    fn c4_names_are_unique_and_buckets_rise_and_no_label_names_who_or_what() {
        for (place, metric) in ALL.iter().enumerate() {
            assert!(metric.name.starts_with("dlock_"), "{}", metric.name);
            assert!(ALL[..place].iter().all(|other| other.name != metric.name), "{}", metric.name);
            assert!(metric.labels.iter().any(|label| label.name == "backend"), "{}", metric.name);
            for label in metric.labels {
                let few = ["backend", "outcome", "kind", "version"];
                assert!(few.contains(&label.name), "{}: {}", metric.name, label.name);
            }
            if let Kind::Histogram(buckets) = metric.kind {
                assert!(buckets.is_sorted_by(|one, next| one < next), "{}", metric.name);
            }
        }
    }
}
