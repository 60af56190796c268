//! The columns of the page: the one place where a store is added.

use super::cases::Suite;

/// A store as the suites are run on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Which suite's table it stands in.
    pub suite: Suite,
    /// Its heading.
    pub name: &'static str,
    /// The test programs, each with the module in it that is this store's.
    pub runs: &'static [(&'static str, &'static str)],
    /// The server that those runs must have been on, as the run says it; empty: whichever.
    pub on: &'static str,
}

const fn column(
    suite: Suite,
    name: &'static str,
    runs: &'static [(&'static str, &'static str)],
    on: &'static str,
) -> Column {
    Column { suite, name, runs, on }
}

/// All of them, in their order.
pub const COLUMNS: &[Column] = &[
    column(Suite::Store, "memory", &[("memory", "memory"), ("memory", "memory_virtual_time")], ""),
    column(
        Suite::Store,
        "memory, bare",
        &[("memory", "bare"), ("memory", "bare_virtual_time")],
        "",
    ),
    column(Suite::Store, "an example's", &[("own_store", "own")], ""),
    column(
        Suite::Store,
        "embedded",
        &[("embedded", "embedded"), ("embedded", "embedded_virtual_time")],
        "",
    ),
    column(Suite::Store, "etcd 3.4", &[("etcd", "etcd")], "etcd 3.4"),
    column(Suite::Store, "etcd 3.5", &[("etcd", "etcd")], "etcd 3.5"),
    column(Suite::Store, "PostgreSQL 15", &[("postgres", "postgres")], "PostgreSQL 15"),
    column(Suite::Store, "PostgreSQL 17", &[("postgres", "postgres")], "PostgreSQL 17"),
    column(
        Suite::Store,
        "PostgreSQL 15 behind PgBouncer",
        &[("postgres_pooled", "pooled")],
        "PostgreSQL 15",
    ),
    column(
        Suite::Service,
        "memory",
        &[
            ("service_memory", "memory"),
            ("service_memory", "memory_virtual_time"),
            ("service_storm_memory", "memory"),
        ],
        "",
    ),
    column(
        Suite::Service,
        "memory, bare",
        &[
            ("service_memory", "bare"),
            ("service_memory", "bare_virtual_time"),
            ("service_storm_bare", "bare"),
        ],
        "",
    ),
    column(Suite::Service, "an example's", &[("own_store", "own_service")], ""),
    column(
        Suite::Service,
        "embedded",
        &[
            ("service_embedded", "embedded"),
            ("service_embedded", "embedded_virtual_time"),
            ("service_storm_embedded", "embedded"),
        ],
        "",
    ),
    column(Suite::Service, "etcd 3.4", &[("service_etcd", "etcd")], "etcd 3.4"),
    column(Suite::Service, "etcd 3.5", &[("service_etcd", "etcd")], "etcd 3.5"),
    column(Suite::Service, "PostgreSQL 15", &[("service_postgres", "postgres")], "PostgreSQL 15"),
    column(Suite::Service, "PostgreSQL 17", &[("service_postgres", "postgres")], "PostgreSQL 17"),
    column(
        Suite::Service,
        "PostgreSQL 15 behind PgBouncer",
        &[("service_postgres_pooled", "pooled")],
        "PostgreSQL 15",
    ),
    column(
        Suite::Service,
        "HTTP, memory",
        &[
            ("http_memory", "memory"),
            ("http_memory", "memory_virtual_time"),
            ("http_storm_memory", "memory"),
        ],
        "",
    ),
    column(
        Suite::Service,
        "HTTP, bare",
        &[("http_memory", "bare"), ("http_memory", "bare_virtual_time")],
        "",
    ),
    column(
        Suite::Service,
        "HTTP, embedded",
        &[("http_embedded", "embedded"), ("http_embedded", "embedded_virtual_time")],
        "",
    ),
    column(Suite::Service, "HTTP, etcd 3.4", &[("http_etcd", "etcd")], "etcd 3.4"),
    column(
        Suite::Service,
        "HTTP, PostgreSQL 15",
        &[("http_postgres", "postgres")],
        "PostgreSQL 15",
    ),
    column(
        Suite::Service,
        "HTTP, PostgreSQL 15 behind PgBouncer",
        &[("http_postgres_pooled", "pooled")],
        "PostgreSQL 15",
    ),
    column(Suite::Apart, "embedded, two processes", &[("embedded_two_processes", "")], ""),
];

/// Test programs of the suite's package that are no run on a store, and what they are.
pub const NO_STORE: &[(&str, &str)] = &[
    ("clocks", "the guard over three stores on the machine's own clock"),
    ("complete", "every case is listed"),
    ("planted", "stores with planted bugs, which the cases find"),
];

/// Why a group of cases is not run on a store that has a column.
pub const NOT_APPLICABLE: &[(&str, &str)] = &[
    (
        "virtual_time",
        "only a clock that is advanced by hand tells a millisecond or a week apart; a server keeps \
         its own time, and an example needs no more than the rest",
    ),
    ("timing", "the same, for the service"),
    (
        "storm",
        "measures its own process, so it has a program of its own; what it holds the service to does \
         not depend on the store's server, and over HTTP not on the store",
    ),
];
