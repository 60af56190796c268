//! The tables as diesel sees them; `migrations/` says what each column means.

diesel::table! {
    dlock_meta (id) {
        id -> Integer,
        boot_id -> Text,
        time_namespace -> Text,
        boot_nanos -> BigInt,
        last_token -> BigInt,
        floor -> BigInt,
        sessions -> BigInt,
        locks -> BigInt,
        settled -> BigInt,
    }
}

diesel::table! {
    dlock_sessions (id) {
        id -> Binary,
        owner -> Text,
        ttl_ms -> BigInt,
        expires_at -> BigInt,
        private -> Bool,
    }
}

diesel::table! {
    dlock_locks (namespace, name) {
        namespace -> Text,
        name -> Text,
        fence -> BigInt,
        session -> Nullable<Binary>,
        attempt -> Nullable<Binary>,
        acquired_at -> BigInt,
        touched_at -> BigInt,
    }
}

diesel::table! {
    dlock_settled (session, attempt) {
        session -> Binary,
        attempt -> Binary,
        settled_at -> BigInt,
    }
}

diesel::table! {
    dlock_revocations (id) {
        id -> BigInt,
        namespace -> Text,
        name -> Text,
        previous -> Nullable<BigInt>,
        floor -> BigInt,
        actor -> Text,
        reason -> Text,
        revoked_at -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(dlock_locks, dlock_sessions, dlock_settled);
