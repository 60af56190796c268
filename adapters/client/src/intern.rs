//! Names that errors carry as `'static` text: those that servers use, and one for the rest.

/// Fields of requests.
const FIELDS: [&str; 17] = [
    "name",
    "namespace",
    "owner",
    "ttl_ms",
    "session_id",
    "attempt_id",
    "max_wait_ms",
    "fencing_token",
    "expected_token",
    "actor",
    "reason",
    "at_least",
    "held",
    "prefix",
    "limit",
    "cursor",
    "after",
];

/// Configuration keys of limits.
const LIMITS: [&str; 8] = [
    "lock.max_waiters",
    "lock.max_waiters_per_lock",
    "lock.max_locks",
    "lock.max_sessions",
    "lock.max_settled_attempts",
    "lock.max_unsettled",
    "http.max_connections",
    "http.max_body",
];

/// The field; of `held[3].name` it is `held`. Unknown ones are all `request`.
pub(crate) fn field(name: &str) -> &'static str {
    let head = name.split(['[', '.']).next().unwrap_or("");
    FIELDS.into_iter().find(|known| *known == head).unwrap_or("request")
}

/// The limit's key. Unknown ones are all `server`.
pub(crate) fn limit(name: &str) -> &'static str {
    LIMITS.into_iter().find(|known| *known == name).unwrap_or("server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_kept_and_others_have_one() {
        assert_eq!(field("ttl_ms"), "ttl_ms");
        assert_eq!(field("held[3].name"), "held");
        assert_eq!((field(""), field("colour"), field(".")), ("request", "request", "request"));
        assert_eq!(limit("lock.max_waiters"), "lock.max_waiters");
        assert_eq!((limit(""), limit("lock.max_waiters.")), ("server", "server"));
    }
}
