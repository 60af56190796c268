//! What differs between the stores within the contract, and why: one static table.
//!
//! `cargo xtask parity` prints it into `tasks/parity.md`, so this file is compiled into that tool
//! as well and uses nothing but the language. What the suite can measure stands in [`Facts`] and is
//! asserted by the cases of `measured`; what others show is named in each cell.

/// A store of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// What `backend_id` answers.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// Whether it exists; if not, its cells say what was decided and need not be shown yet.
    pub there: bool,
    /// What the suite measures of it.
    pub facts: Facts,
}

/// What the suite measures of a store.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// The effective lifetime where [`ASKED_MS`] were asked for, in milliseconds.
    pub effective_ms: u64,
    /// Whether numbers for tokens are used up by grants alone, not by other writes.
    pub only_grants_use_numbers: bool,
    /// Whether a waiter of one view of the store is counted by another one.
    pub waiters_are_counted_elsewhere: bool,
    /// How long after its end a lease may live on while nothing fails, at most, in milliseconds.
    pub late_ms: u64,
}

/// The lifetime that the suite asks for to see how it is rounded, in milliseconds.
pub const ASKED_MS: u64 = 1_234;

/// To the millisecond, one number a grant, waiters known to their own process, never late.
const EXACT: Facts = Facts {
    effective_ms: ASKED_MS,
    only_grants_use_numbers: true,
    waiters_are_counted_elsewhere: false,
    late_ms: 0,
};

/// The stores, in the order of every row's cells.
pub const STORES: [Store; 4] = [
    Store {
        id: "memory",
        name: "memory",
        there: true,
        facts: Facts { waiters_are_counted_elsewhere: true, ..EXACT },
    },
    Store { id: "embedded", name: "embedded", there: true, facts: EXACT },
    Store {
        id: "etcd",
        name: "etcd",
        there: true,
        facts: Facts {
            effective_ms: 2_000,
            only_grants_use_numbers: false,
            late_ms: 2_000,
            ..EXACT
        },
    },
    Store { id: "postgres", name: "PostgreSQL", there: true, facts: EXACT },
];

/// A property in which stores differ.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub property: &'static str,
    /// What holds of each store, in the order of [`STORES`].
    pub cells: [Cell; STORES.len()],
}

/// What holds of a store.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// What.
    pub what: &'static str,
    /// Why.
    pub why: &'static str,
    /// What shows it: `path.rs::test`, or a page below `tasks/`.
    pub shown: &'static [&'static str],
}

const fn cell(what: &'static str, why: &'static str, shown: &'static [&'static str]) -> Cell {
    Cell { what, why, shown }
}

const TURNS: &str =
    "tests/conformance/src/service_cases/line.rs::all_get_their_turn_at_two_servers";
const IN_ORDER: &str =
    "tests/conformance/src/service_cases/line.rs::j10_waiters_are_served_in_order";
const ROUNDED: &str =
    "tests/conformance/src/cases/measured.rs::a_lifetime_is_rounded_up_as_the_table_says";
const STEPS: &str = "tests/conformance/src/cases/measured.rs::tokens_step_as_the_table_says";
const COUNTED: &str = "tests/conformance/src/cases/measured.rs::a_waiter_is_counted_where_it_waits";
const LAST_MS: &str = "tests/conformance/src/cases/virtual_time.rs::a_lease_ends_at_its_end";
const NAMED: &str =
    "tests/conformance/src/cases/keep_alive.rs::c15_exactly_the_lost_grant_is_named";
const EXTENDS: &str =
    "tests/conformance/src/cases/keep_alive.rs::extending_a_grant_extends_its_lease";
const REAPED: &str = "tests/conformance/src/cases/expiry.rs::reaping_counts_what_has_ended";
const LIMITED: &str = "tests/conformance/src/cases/limits.rs::locks_are_limited";
const REBOOT: &str = "adapters/embedded/tests/files.rs::\
                      a_reboot_frees_nothing_early_and_only_once_gives_the_whole_lifetime";
const WRITES_NOTHING: &str = "adapters/etcd/tests/seeds/renew_and_release.rs::\
                              t032_three_renews_return_one_token_and_write_nothing";

/// The table.
pub const ROWS: &[Row] = &[
    Row {
        property: "Where a token comes from",
        cells: [
            cell(
                "a counter of the process",
                "everything lies under one mutex",
                &[
                    STEPS,
                    "adapters/memory/src/tests.rs::\
                    inv04_a_source_that_fell_behind_is_an_incident_and_never_a_handle",
                ],
            ),
            cell(
                "one counter in the file, drawn in the granting transaction",
                "SQLite has no sequences; one row serves all namespaces",
                &[
                    STEPS,
                    "adapters/embedded/tests/files.rs::\
                    inv04_a_counter_set_back_by_hand_grants_nothing",
                    "decisions/0013-embedded-one-counter-one-floor.md",
                ],
            ),
            cell(
                "the revision of the granting transaction plus the namespace's offset; every \
                 write in the cluster uses up a number",
                "a revision is the one number that etcd hands out atomically with a write",
                &[
                    STEPS,
                    "adapters/etcd/tests/seeds/grant.rs::\
                    t030_the_token_is_the_revision_of_the_granting_transaction",
                    "decisions/0032-etcd-numbering-and-going-back.md",
                ],
            ),
            cell(
                "`dlock_fencing_token_seq`, one sequence for the schema, drawn while the lock's \
                 row is held; a shot that loses may use up a number",
                "a sequence is never turned back by a rollback",
                &[
                    STEPS,
                    "adapters/postgres/tests/traps/token.rs::trap_23_the_token_is_drawn_under_the_rows_lock",
                ],
            ),
        ],
    },
    Row {
        property: "Lifetime: granularity and rounding",
        cells: [
            cell("milliseconds, as asked", "kept as asked", &[ROUNDED]),
            cell("milliseconds, as asked", "kept as asked", &[ROUNDED]),
            cell(
                "rounded up to whole seconds; deadlines count the smaller one",
                "etcd's leases count seconds",
                &[
                    ROUNDED,
                    "adapters/etcd/src/leases.rs::lifetimes_are_rounded_up_and_compared_by_the_smaller",
                ],
            ),
            cell("milliseconds, as asked", "timestamps are finer than that", &[ROUNDED]),
        ],
    },
    Row {
        property: "Late expiry",
        cells: [
            cell("never", "whoever meets an ended lease ends it", &[LAST_MS]),
            cell(
                "never, but once after a reboot: up to a whole lifetime",
                "moments of another boot's clock cannot be compared",
                &[LAST_MS, REBOOT, "decisions/0015-embedded-clock-and-place.md"],
            ),
            cell(
                "up to 2 s; after a change of leader up to a whole lifetime",
                "etcd looks for ended leases twice a second and ends so many at a time; a new \
                 leader begins every lease anew",
                &[
                    "tests/conformance/src/cases/expiry.rs::expiry_frees_every_lock_of_the_session",
                    "adapters/etcd/tests/clusters/crowds.rs::\
                    c65_five_thousand_locks_that_end_at_once_are_free_within_the_bound",
                    "adapters/etcd/tests/clusters/leaders.rs::\
                    c63_an_old_leader_that_wakes_up_extends_nothing",
                ],
            ),
            cell(
                "never for whoever asks; the session's row stays until somebody does, or the reaper",
                "every call compares with the database's clock and deletes what has ended",
                &["tests/conformance/src/cases/expiry.rs::operators_find_an_expired_lock_free"],
            ),
        ],
    },
    Row {
        property: "Early expiry",
        cells: [
            cell("never", "the process's own clock decides", &[LAST_MS]),
            cell("never", "the boot clock is not set by anybody", &[LAST_MS, REBOOT]),
            cell(
                "possible after the leader was paused: only fencing protects then",
                "a leader that resumes revokes leases which were kept alive through the next one: seen \
                 in 11 of 20 rounds on 3.4.23, in 3 of 20 on 3.5.16",
                &[
                    "tests/judge/src/rules/j3_windows.rs",
                    "decisions/0031-etcd-what-counts-of-a-lease.md",
                ],
            ),
            cell(
                "only where the database's clock is set forward: only fencing protects then",
                "`clock_timestamp()` is wall time",
                &["contracts/C1-relational-stores.md"],
            ),
        ],
    },
    Row {
        property: "Whose clock ends a lease",
        cells: [
            cell("the process's, handed in", "there is nobody else", &[LAST_MS]),
            cell(
                "the machine's boot clock",
                "all processes of a boot share it, and it counts suspend",
                &[
                    "adapters/embedded/tests/files.rs::\
                    trap33_a_file_in_use_on_another_clock_is_refused",
                    "decisions/0015-embedded-clock-and-place.md",
                ],
            ),
            cell(
                "the leader's monotonic one",
                "leases are etcd's own",
                &["adapters/etcd/tests/clusters/deposed.rs::\
                    trap_03_a_deposed_leaders_answer_moves_no_deadline"],
            ),
            cell(
                "the database's",
                "servers need not agree about the time",
                &[
                    "adapters/postgres/tests/traps/lease.rs::trap_24_the_lease_is_counted_from_after_the_wait",
                ],
            ),
        ],
    },
    Row {
        property: "Who can share it",
        cells: [
            cell("one process", "it is memory", &["decisions/0004-waiters-queue-locally.md"]),
            cell(
                "processes of one machine; no network disk",
                "SQLite's locks do not reach further",
                &[
                    "tests/conformance/tests/embedded_two_processes.rs::\
                    inv01_one_holder_in_both_processes",
                    "adapters/embedded/src/file_system.rs::the_deepest_and_latest_mount_decides",
                ],
            ),
            cell(
                "any number of servers",
                "the cluster decides",
                &["tests/e2e/tests/etcd/serving.rs::any_server_serves_what_another_granted"],
            ),
            cell(
                "any number of servers, also behind a pooler of transactions",
                "no state of a connection is used",
                &[
                    "tests/conformance/tests/postgres_pooled.rs",
                    "tests/e2e/tests/judged.rs::j1_to_j4_hold_on_postgres_while_its_two_servers_are_killed_ten_times",
                ],
            ),
        ],
    },
    Row {
        property: "Fairness",
        cells: [
            cell("in order", "one server, one line", &[IN_ORDER]),
            cell(
                "in order within a process, by chance between processes",
                "a line for all would be a write for each waiter",
                &[IN_ORDER, TURNS, "decisions/0004-waiters-queue-locally.md"],
            ),
            cell(
                "in order within a server, by chance between servers",
                "the same",
                &[IN_ORDER, TURNS, "decisions/0004-waiters-queue-locally.md"],
            ),
            cell(
                "in order within a server, by chance between servers",
                "the same",
                &["decisions/0004-waiters-queue-locally.md"],
            ),
        ],
    },
    Row {
        property: "How a waiter hears of a release",
        cells: [
            cell(
                "at once",
                "a bell in the process",
                &["tests/conformance/src/cases/waiting.rs::inv08_every_end_of_a_grant_wakes"],
            ),
            cell(
                "at once in the process; another process's within 10 ms",
                "nothing tells of a write to a file reliably, so it is looked at",
                &["tests/conformance/tests/embedded_two_processes.rs::\
                    inv08_a_release_there_wakes_a_waiter_here"],
            ),
            cell(
                "by one watch for the whole store",
                "a watch that starts in the past is served late",
                &[
                    "adapters/etcd/tests/seeds/wait.rs::t033_a_delete_before_the_watch_is_not_missed",
                    "decisions/0008-one-watch-per-store.md",
                ],
            ),
            cell(
                "no `ReleaseWaiter`: the head of the line asks again, 20 ms to 1 s apart by chance; \
                 a release through the same server wakes it at once",
                "being notified takes a connection of one's own, which a pooler does not give",
                &["domain/src/backoff.rs::delays_stay_between_floor_and_growing_ceiling"],
            ),
        ],
    },
    Row {
        property: "What `waiter_count` counts",
        cells: [
            cell("all who wait", "there is one process", &[COUNTED]),
            cell("who waits in the process that is asked", "lines are local", &[COUNTED]),
            cell(
                "who waits at the server that is asked",
                "lines are local",
                &[
                    COUNTED,
                    "adapters/etcd/tests/seeds/wait.rs::t033_waiters_are_counted_while_they_wait",
                ],
            ),
            cell(
                "who stands in line at the server that is asked",
                "the store knows of no waiter",
                &["tests/conformance/src/service_cases/operating.rs::\
                    inspecting_shows_holder_and_waiters"],
            ),
        ],
    },
    Row {
        property: "What a renewal writes",
        cells: [
            cell("nothing durable", "it is memory", &[EXTENDS]),
            cell(
                "one row, in a commit that it shares with calls of the same moment",
                "the expiry is a column of the session's row",
                &[EXTENDS, "decisions/0005-grouped-commits.md"],
            ),
            cell(
                "nothing: two messages and two linearizable reads",
                "the leader keeps leases outside its log",
                &[WRITES_NOTHING, "decisions/0031-etcd-what-counts-of-a-lease.md"],
            ),
            cell("one row", "the expiry is a column of the session's row", &[EXTENDS]),
        ],
    },
    Row {
        property: "What a keep-alive of many locks writes",
        cells: [
            cell("nothing durable", "it is memory", &[NAMED]),
            cell(
                "one row; the locks are read",
                "only sessions expire",
                &[NAMED, "decisions/0002-expiry-belongs-to-the-session.md"],
            ),
            cell(
                "nothing; the locks are read, many in a transaction",
                "only sessions expire",
                &[NAMED, "decisions/0002-expiry-belongs-to-the-session.md"],
            ),
            cell(
                "one row; the locks are read",
                "only sessions expire",
                &["decisions/0002-expiry-belongs-to-the-session.md"],
            ),
        ],
    },
    Row {
        property: "Who clears away what has ended",
        cells: [
            cell("`reap_expired`", "nothing depends on it", &[REAPED]),
            cell(
                "`reap_expired`, which also forgets long-idle rows behind the floor",
                "rows outlive releases for their fence",
                &[REAPED, "adapters/embedded/tests/files.rs::idle_rows_are_purged_behind_a_floor"],
            ),
            cell(
                "etcd; `reap_expired` answers 0",
                "keys go with their lease; what outlives a release is no row of every lock",
                &[
                    REAPED,
                    "adapters/etcd/tests/seeds/renew_and_release.rs::t032_there_is_nothing_to_reap",
                ],
            ),
            cell(
                "`reap_expired`, which also forgets long-idle rows behind the floor",
                "rows outlive releases for their fence",
                &[
                    REAPED,
                    "adapters/postgres/tests/volume/names.rs::names_used_once_are_forgotten_and_tokens_still_rise",
                ],
            ),
        ],
    },
    Row {
        property: "`lock.max_locks`, `lock.max_sessions`",
        cells: [
            cell(
                "hold",
                "counted in memory",
                &[
                    LIMITED,
                    "adapters/memory/src/tests.rs::sessions_whose_lease_has_ended_make_room",
                ],
            ),
            cell(
                "hold",
                "counted in the file",
                &[LIMITED, "decisions/0027-limits-make-room-at-once.md"],
            ),
            cell(
                "do not hold: etcd's space quota bounds it",
                "no transaction of etcd's can count",
                &[
                    LIMITED,
                    "adapters/etcd/tests/clusters/quota.rs::\
                    c60_without_space_acquires_are_unknown_and_everything_else_works",
                    "decisions/0030-etcd-keys-and-leases.md",
                ],
            ),
            cell(
                "whoever runs the database bounds it",
                "an exact count would put all grants in one line",
                &[LIMITED, "decisions/0036-postgres-bounds.md"],
            ),
        ],
    },
    Row {
        property: "After `kill -9`",
        cells: [
            cell(
                "nothing is left, and tokens begin anew",
                "it is memory",
                &["decisions/0006-floors-outlive-everything.md"],
            ),
            cell(
                "everything that was answered; what the killed held ends with its lease",
                "an answer comes after the sync",
                &[
                    "tests/conformance/tests/embedded_two_processes.rs::\
                    kill_9_in_mid_work_loses_nothing_that_was_answered",
                    "tests/e2e/tests/judged.rs::\
                    j1_to_j4_hold_for_64_clients_while_the_server_is_killed_ten_times",
                ],
            ),
            cell(
                "the same, of servers and of members",
                "an answer comes after a majority has it",
                &[
                    "tests/e2e/tests/judged.rs::\
                    j1_to_j4_hold_on_etcd_while_its_two_servers_are_killed_ten_times",
                    "adapters/etcd/tests/clusters/leaders.rs::\
                    a_restart_of_everything_keeps_what_was_granted",
                ],
            ),
            cell(
                "the same, of servers and of the database",
                "`synchronous_commit` is never weaker than `on`",
                &[
                    "tests/e2e/tests/judged.rs::j1_to_j4_hold_while_old_postgres_is_killed_ten_times",
                ],
            ),
        ],
    },
    Row {
        property: "After a restore, or any other way back",
        cells: [
            cell("there is none", "it is memory", &["decisions/0006-floors-outlive-everything.md"]),
            cell(
                "a file replaced under a running process is noticed; one put back before the start \
                 is not: `floor raise` is up to whoever does that",
                "the file is all there is to remember",
                &[
                    "adapters/embedded/tests/files.rs::\
                    a_database_that_was_removed_or_replaced_grants_nothing_more",
                    "decisions/0006-floors-outlive-everything.md",
                ],
            ),
            cell(
                "noticed by every server that knew a higher revision, with `lock.state_file` also \
                 by one started since: nothing is granted until `floor raise`",
                "a restored cluster keeps its ids and issues revisions a second time",
                &[
                    "adapters/etcd/tests/clusters/going_back.rs::\
                    c64_after_a_restore_nothing_is_granted_until_the_floor_is_raised",
                    "decisions/0032-etcd-numbering-and-going-back.md",
                ],
            ),
            cell(
                "another system identifier or timeline is noticed; `floor raise` is needed",
                "a restored sequence issues numbers a second time",
                &["decisions/0035-postgres-history.md"],
            ),
        ],
    },
];

/// What is different for users of any store who come over HTTP.
pub const OVER_HTTP: &[Cell] = &[
    cell(
        "who holds a lock is shown by owner, never by session",
        "a session's id is the secret to renew and release with",
        &["tests/conformance/src/service_cases/owning.rs::\
            c24_a_token_of_another_session_is_denied"],
    ),
    cell(
        "a lock without a session has one that the client opens, keeps and closes",
        "the client must be able to repeat an attempt whose answer got lost",
        &["adapters/client/tests/client/private.rs::it_lives_and_ends_with_its_lock"],
    ),
    cell(
        "who chose no attempt id may be told `Unknown` where the library says that nothing was done",
        "the client names every attempt, so the server cannot tell that nobody will repeat it",
        &["tests/conformance/src/service_cases/repeating.rs::inv09_an_unknown_outcome_is_settled"],
    ),
    cell(
        "a wait is cut into polls of at most 30 s",
        "proxies cut longer ones",
        &["adapters/client/tests/client/waiting.rs::a_wait_is_cut_into_polls"],
    ),
];
