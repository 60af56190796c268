//! Every key there is.

use std::sync::LazyLock;

use super::kind::Kind;
use crate::wiring;

/// A configuration key.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file, with dots.
    pub name: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// Its value when nobody says; `None`: absent, or worked out.
    pub default: Option<&'static str>,
    /// The flag that sets it, where there is one.
    pub flag: Option<&'static str>,
    /// What it means, for people.
    pub meaning: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
}

impl Key {
    /// The variable that sets it: `DLOCK_` and the name in capitals, dots as underscores.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("DLOCK_{}", self.name.to_ascii_uppercase().replace('.', "_"))
    }
}

/// All keys of this build, in the order in which they are shown: those of a store come with it.
pub static TABLE: LazyLock<Vec<&'static Key>> =
    LazyLock::new(|| CORE.iter().chain(wiring::ETCD_KEYS).chain(wiring::POSTGRES_KEYS).collect());

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

pub(super) const fn entry(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    flag: Option<&'static str>,
    meaning: &'static str,
) -> Key {
    Key { name, kind, default, flag, meaning, secret: false }
}

/// The keys that every build has.
static CORE: &[Key] = &[
    entry(
        "server",
        Kind::Servers,
        None,
        Some("--server"),
        "the lock servers that client commands speak to, the first that answers",
    ),
    entry(
        "lock.backend",
        Kind::Choice(wiring::BACKENDS),
        Some("embedded"),
        Some("--backend"),
        "the store that the server keeps locks in",
    ),
    entry(
        "lock.namespace",
        Kind::Namespace,
        Some("default"),
        Some("--namespace"),
        "the namespace of calls that name none",
    ),
    entry(
        "lock.default.ttl",
        Kind::Span(1_000, DAY),
        Some("30s"),
        Some("--ttl"),
        "how long a lock outlives its holder, where the command line does not say",
    ),
    entry(
        "lock.call_budget",
        Kind::Span(100, 60_000),
        Some("5s"),
        None,
        "how long one store call may take",
    ),
    entry(
        "lock.backoff.floor",
        Kind::Span(1, 10_000),
        Some("20ms"),
        None,
        "the shortest pause before a repeat",
    ),
    entry(
        "lock.backoff.cap",
        Kind::Span(1, 60_000),
        Some("1s"),
        None,
        "the longest pause before a repeat",
    ),
    entry(
        "lock.max_waiters",
        Kind::Count(1, 1_000_000),
        Some("10000"),
        None,
        "calls that may wait at once on a server",
    ),
    entry(
        "lock.max_waiters_per_lock",
        Kind::Count(1, 1_000_000),
        Some("1000"),
        None,
        "calls that may wait at once for one lock on a server",
    ),
    entry(
        "lock.max_locks",
        Kind::Count(1, 1_000_000_000),
        Some("1000000"),
        None,
        "locks that a store may know at once",
    ),
    entry(
        "lock.max_sessions",
        Kind::Count(1, 1_000_000_000),
        Some("100000"),
        None,
        "sessions that a store may hold open at once",
    ),
    entry(
        "lock.reap.interval",
        Kind::Span(100, HOUR),
        Some("10s"),
        None,
        "how often ended leases are cleared away; nothing waits for it",
    ),
    entry(
        "lock.reap.purge_after",
        Kind::Span(60_000, 3_650 * DAY),
        Some("7d"),
        None,
        "how long a lock that nobody holds is remembered",
    ),
    entry(
        "embedded.path",
        Kind::Path,
        None,
        Some("--data-dir"),
        "the directory of the embedded store; by default /var/lib/dlock for root, else \
         $XDG_STATE_HOME/dlock",
    ),
    entry(
        "http.listen",
        Kind::Address,
        Some("127.0.0.1:7420"),
        Some("--listen"),
        "where the server listens",
    ),
    entry(
        "http.max_body",
        Kind::Bytes(1 << 10, 1 << 20),
        Some("64KiB"),
        None,
        "the largest request body",
    ),
    entry(
        "http.max_connections",
        Kind::Count(4, 1_000_000),
        Some("16384"),
        None,
        "connections served at once; three quarters of them may wait for a lock",
    ),
    entry(
        "http.drain",
        Kind::Span(0, HOUR),
        Some("10s"),
        Some("--drain"),
        "how long requests may take to end after a signal to stop",
    ),
    entry(
        "log.format",
        Kind::Choice(&["auto", "json", "text"]),
        Some("auto"),
        None,
        "how log lines look; auto: text on a terminal, JSON elsewhere",
    ),
    entry("log.level", Kind::Levels, Some("info"), None, "which log lines are written"),
];

/// The key of this name.
#[must_use]
pub fn key(name: &str) -> Option<&'static Key> {
    TABLE.iter().copied().find(|key| key.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defaults_are_of_their_kind() {
        for (place, one) in TABLE.iter().enumerate() {
            assert!(!TABLE[..place].iter().any(|other| other.name == one.name), "{}", one.name);
            if let Some(default) = one.default {
                assert_eq!(one.kind.check(default), Ok(()), "{}", one.name);
            }
            assert!(!one.meaning.is_empty() && !one.meaning.ends_with('.'), "{}", one.name);
        }
    }

    #[test]
    fn variables_follow_the_names() {
        let variable = |name: &str| key(name).unwrap().variable();
        assert_eq!(variable("lock.backend"), "DLOCK_LOCK_BACKEND");
        assert_eq!(variable("http.listen"), "DLOCK_HTTP_LISTEN");
        assert_eq!(variable("embedded.path"), "DLOCK_EMBEDDED_PATH");
        assert_eq!(variable("server"), "DLOCK_SERVER");
    }
}
