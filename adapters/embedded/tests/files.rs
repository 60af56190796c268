//! What is the embedded store's alone: its file, its clock, its neighbours. The contract that all
//! stores share is tested by the conformance suite.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, also in the helpers of its file"
)]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use dlock_domain::{
    Applied, AttemptId, Deadline, ErrorKind, Invariant, LockHandle, LockKey, LockName, Namespace,
    OwnerId, Ttl,
};
use dlock_embedded::{ClockDomain, EmbeddedConfig, EmbeddedStore, OpenError};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_ports::{Attempt, Backend, Clock, Consistency, Holder, InsertRequest, Intent};

struct Bench {
    clock: ManualClock,
    domain: ClockDomain,
    folder: tempfile::TempDir,
    opened: AtomicU64,
}

impl Bench {
    fn new() -> Self {
        let domain = ClockDomain { boot_id: "boot-1".into(), time_namespace: "time:[1]".into() };
        Self {
            clock: ManualClock::new(),
            domain,
            folder: tempfile::tempdir().unwrap(),
            opened: AtomicU64::new(1),
        }
    }

    fn config(&self) -> EmbeddedConfig {
        EmbeddedConfig::at(self.folder.path())
    }

    fn open(&self) -> Result<EmbeddedStore, OpenError> {
        self.open_with(self.config(), &self.domain)
    }

    fn open_with(
        &self,
        config: EmbeddedConfig,
        domain: &ClockDomain,
    ) -> Result<EmbeddedStore, OpenError> {
        // Two stores of one file never share their chance: ids are never issued twice.
        let seed = self.opened.fetch_add(1, Ordering::Relaxed);
        let entropy = Arc::new(SeededEntropy::new(seed));
        EmbeddedStore::open_on_clock(config, domain, Arc::new(self.clock.clone()), entropy)
    }

    fn by(&self) -> Deadline {
        Deadline::at(self.clock.now().after(Duration::from_secs(3_600)))
    }

    fn sql(&self) -> SqliteConnection {
        let file = self.config().file();
        SqliteConnection::establish(file.to_str().unwrap()).unwrap()
    }

    fn wish(&self, name: &str, attempt: u128) -> InsertRequest {
        InsertRequest {
            key: key(name),
            holder: Holder::Private { owner: OwnerId::new("me").unwrap(), ttl: ttl(10_000) },
            attempt: AttemptId::from_bits(attempt),
            intent: Intent::Acquire,
        }
    }

    async fn shot(&self, backend: &Backend, name: &str, attempt: u128) -> Attempt {
        let request = self.wish(name, attempt);
        backend.locks.try_insert(request, self.by()).await.unwrap()
    }

    async fn take(&self, backend: &Backend, name: &str, attempt: u128) -> LockHandle {
        match self.shot(backend, name, attempt).await {
            Attempt::Granted(handle) => handle,
            Attempt::Held(_) => panic!("{name} is held"),
        }
    }

    async fn is_held(&self, backend: &Backend, name: &str) -> bool {
        backend
            .locks
            .read(&key(name), Consistency::Linearizable, self.by())
            .await
            .unwrap()
            .is_some()
    }
}

fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(name).unwrap())
}

fn ttl(millis: u64) -> Ttl {
    Ttl::from_millis(millis).unwrap()
}

fn error(result: Result<EmbeddedStore, OpenError>) -> OpenError {
    match result {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn tokens_and_grants_survive_reopening() {
    let bench = Bench::new();
    let backend = bench.open().unwrap().backend();
    let first = bench.take(&backend, "a", 1).await;
    drop(backend);
    let backend = bench.open().unwrap().backend();
    assert!(bench.is_held(&backend, "a").await);
    let kept = backend.locks.extend(&key("a"), first.token, bench.by()).await.unwrap();
    assert_eq!(kept.unwrap().token, first.token);
    assert!(backend.locks.delete_if_owner(&key("a"), first.token, bench.by()).await.unwrap());
    assert!(bench.take(&backend, "a", 2).await.token > first.token);
}

#[tokio::test]
async fn its_files_are_private_and_the_directory_is_made() {
    let bench = Bench::new();
    let deep = bench.folder.path().join("one/two");
    let store = bench.open_with(EmbeddedConfig::at(&deep), &bench.domain).unwrap();
    bench.take(&store.backend(), "a", 1).await;
    assert_eq!(mode(&deep), 0o700);
    for entry in std::fs::read_dir(&deep).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_reboot_frees_nothing_early_and_only_once_gives_the_whole_lifetime() {
    let bench = Bench::new();
    let backend = bench.open().unwrap().backend();
    bench.take(&backend, "old", 1).await;
    bench.clock.advance(Duration::from_secs(11));
    bench.take(&backend, "young", 2).await;
    drop(backend);

    // Another boot: its clock starts anywhere.
    bench.clock.advance(Duration::from_secs(500));
    let rebooted = ClockDomain { boot_id: "boot-2".into(), ..bench.domain.clone() };
    let store = bench.open_with(bench.config(), &rebooted).unwrap();
    let backend = store.backend();
    assert!(bench.is_held(&backend, "young").await);
    assert!(!bench.is_held(&backend, "old").await, "it had expired before the last commit");
    bench.clock.advance(Duration::from_secs(6));
    drop((store, backend));
    let backend = bench.open_with(bench.config(), &rebooted).unwrap().backend();
    bench.clock.advance(Duration::from_secs(3));
    assert!(bench.is_held(&backend, "young").await, "9 of 10 s since the reboot");
    bench.clock.advance(Duration::from_secs(1));
    assert!(!bench.is_held(&backend, "young").await, "armed once, not at each opening");
}

#[tokio::test]
async fn trap33_a_file_in_use_on_another_clock_is_refused() {
    let bench = Bench::new();
    let first = bench.open().unwrap();
    let held = bench.take(&first.backend(), "a", 1).await;
    let shifted = ClockDomain { time_namespace: "time:[2]".into(), ..bench.domain.clone() };
    let refused = error(bench.open_with(bench.config(), &shifted));
    assert!(matches!(refused, OpenError::OtherClock { .. }), "{refused}");
    // The refusal disturbed nobody, and others on the right clock may still come.
    let second = bench.open().unwrap();
    assert!(bench.is_held(&second.backend(), "a").await);
    drop((first, second));
    // Nobody uses it any more: it may move to the other clock.
    let moved = bench.open_with(bench.config(), &shifted).unwrap();
    assert!(bench.is_held(&moved.backend(), "a").await);
    assert!(bench.take(&moved.backend(), "b", 2).await.token > held.token);
}

#[tokio::test]
async fn a_newer_schema_is_refused_by_name() {
    let bench = Bench::new();
    drop(bench.open().unwrap());
    bench
        .sql()
        .batch_execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('29990101000000')")
        .unwrap();
    match error(bench.open()) {
        OpenError::NewerSchema { found, .. } => assert_eq!(found, "29990101000000"),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let bench = Bench::new();
    let junk = vec![7_u8; 8_192];
    std::fs::write(bench.config().file(), &junk).unwrap();
    let refused = error(bench.open());
    assert!(matches!(refused, OpenError::Corrupt { .. }), "{refused}");
    assert_eq!(std::fs::read(bench.config().file()).unwrap(), junk);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_says_which() {
    let bench = Bench::new();
    let blocked = bench.folder.path().join("file");
    std::fs::write(&blocked, b"").unwrap();
    let refused = error(bench.open_with(EmbeddedConfig::at(blocked.join("dir")), &bench.domain));
    assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
    assert!(refused.to_string().contains("file/dir"), "{refused}");
}

#[tokio::test]
async fn a_full_disk_is_contention_that_changed_nothing_and_a_release_still_works() {
    let bench = Bench::new();
    let config = EmbeddedConfig { max_file_bytes: Some(40 * 4_096), ..bench.config() };
    let backend = bench.open_with(config, &bench.domain).unwrap().backend();
    let held = bench.take(&backend, "held", 0).await;
    let long = "x".repeat(500);
    let mut fitted = 0;
    let refused = loop {
        let request = InsertRequest {
            key: key(&format!("{long}{fitted}")),
            holder: Holder::Private { owner: OwnerId::new("me").unwrap(), ttl: ttl(10_000) },
            attempt: AttemptId::from_bits(fitted + 1),
            intent: Intent::Acquire,
        };
        match backend.locks.try_insert(request, bench.by()).await {
            Ok(_) => fitted += 1,
            Err(error) => break error,
        }
        assert!(fitted < 10_000, "the file has no bound");
    };
    assert_eq!(refused.kind(), ErrorKind::Contention);
    assert_eq!(refused.applied(), Applied::No);
    assert!(refused.detail().contains("full"), "{refused}");
    assert!(!bench.is_held(&backend, &format!("{long}{fitted}")).await);
    for earlier in 0..fitted {
        assert!(bench.is_held(&backend, &format!("{long}{earlier}")).await);
    }
    assert!(backend.locks.extend(&held.key, held.token, bench.by()).await.unwrap().is_some());
    assert!(backend.locks.delete_if_owner(&held.key, held.token, bench.by()).await.unwrap());
}

#[tokio::test]
async fn a_corrupt_record_is_an_incident_that_names_its_key_and_spoils_nothing_else() {
    let bench = Bench::new();
    let backend = bench.open().unwrap().backend();
    bench.take(&backend, "broken", 1).await;
    let fine = bench.take(&backend, "fine", 2).await;
    bench
        .sql()
        .batch_execute("UPDATE dlock_locks SET session = x'0102' WHERE name = 'broken'")
        .unwrap();
    let refused =
        backend.locks.delete_if_owner(&key("broken"), fine.token, bench.by()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvariantViolated(Invariant::RecordsReadable));
    assert!(refused.detail().contains("default/broken"), "{refused}");
    assert_eq!(refused.applied(), Applied::No);
    assert!(backend.locks.delete_if_owner(&key("fine"), fine.token, bench.by()).await.unwrap());
}

#[tokio::test]
async fn inv04_a_counter_set_back_by_hand_grants_nothing() {
    let bench = Bench::new();
    let backend = bench.open().unwrap().backend();
    let held = bench.take(&backend, "a", 1).await;
    backend.locks.delete_if_owner(&key("a"), held.token, bench.by()).await.unwrap();
    bench.sql().batch_execute("UPDATE dlock_meta SET last_token = 0").unwrap();
    let request = InsertRequest {
        key: key("a"),
        holder: Holder::Private { owner: OwnerId::new("me").unwrap(), ttl: ttl(10_000) },
        attempt: AttemptId::from_bits(2),
        intent: Intent::Acquire,
    };
    let refused = backend.locks.try_insert(request, bench.by()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvariantViolated(Invariant::TokensRise));
    assert!(!bench.is_held(&backend, "a").await);
    let sessions: i64 = diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>(
        "(SELECT count(*) FROM dlock_sessions)",
    ))
    .get_result(&mut bench.sql())
    .unwrap();
    assert_eq!(sessions, 0, "the refused attempt's own session went with it");
}

#[tokio::test]
async fn idle_rows_are_purged_behind_a_floor() {
    let bench = Bench::new();
    let backend = bench.open().unwrap().backend();
    let mut last = None;
    for attempt in 0..20 {
        let held = bench.take(&backend, &format!("once-{attempt}"), attempt).await;
        backend.locks.delete_if_owner(&held.key, held.token, bench.by()).await.unwrap();
        last = Some(held.token);
    }
    let rows = || -> i64 {
        diesel::select(diesel::dsl::sql::<diesel::sql_types::BigInt>(
            "(SELECT count(*) FROM dlock_locks)",
        ))
        .get_result(&mut bench.sql())
        .unwrap()
    };
    assert_eq!(rows(), 20);
    bench.clock.advance(Duration::from_secs(7 * 24 * 3_600 + 1));
    assert_eq!(backend.locks.reap_expired(100, bench.by()).await.unwrap(), 0);
    assert_eq!(rows(), 0);
    assert!(bench.take(&backend, "once-0", 99).await.token > last.unwrap());
    // Even a counter that was set back meets the floor that the purge left.
    bench.sql().batch_execute("UPDATE dlock_meta SET last_token = 3").unwrap();
    let request = InsertRequest {
        key: key("once-1"),
        holder: Holder::Private { owner: OwnerId::new("me").unwrap(), ttl: ttl(10_000) },
        attempt: AttemptId::from_bits(100),
        intent: Intent::Acquire,
    };
    let refused = backend.locks.try_insert(request, bench.by()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvariantViolated(Invariant::TokensRise));
}

#[tokio::test]
async fn purging_looks_only_at_what_is_idle() {
    #[derive(QueryableByName)]
    struct Step {
        #[diesel(sql_type = diesel::sql_types::Text)]
        detail: String,
    }
    let bench = Bench::new();
    drop(bench.open().unwrap());
    let plan: Vec<Step> = diesel::sql_query(
        "EXPLAIN QUERY PLAN SELECT namespace, name, fence FROM dlock_locks
         WHERE session IS NULL AND touched_at < 5 ORDER BY touched_at LIMIT 10",
    )
    .load(&mut bench.sql())
    .unwrap();
    let plan: Vec<_> = plan.into_iter().map(|step| step.detail).collect();
    assert!(plan.len() == 1 && plan[0].contains("dlock_locks_idle"), "{plan:?}");
}

#[tokio::test]
async fn a_file_that_another_process_holds_is_contention_and_nothing_was_done() {
    let bench = Bench::new();
    let config = EmbeddedConfig { busy_timeout: Duration::from_millis(50), ..bench.config() };
    let backend = bench.open_with(config, &bench.domain).unwrap().backend();
    let mut other = bench.sql();
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let shots = (0..8).map(|attempt| {
        let request = bench.wish(&format!("k{attempt}"), attempt);
        let (locks, by) = (backend.locks.clone(), bench.by());
        tokio::spawn(async move { locks.try_insert(request, by).await })
    });
    for shot in shots.collect::<Vec<_>>() {
        let refused = shot.await.unwrap().unwrap_err();
        assert_eq!((refused.kind(), refused.applied()), (ErrorKind::Contention, Applied::No));
    }
    other.batch_execute("ROLLBACK").unwrap();
    for attempt in 0..8 {
        assert!(!bench.is_held(&backend, &format!("k{attempt}")).await);
    }
    bench.take(&backend, "k0", 0).await;
}

#[tokio::test]
async fn one_broken_operation_of_a_group_leaves_the_others_whole() {
    let bench = Bench::new();
    let config = EmbeddedConfig { busy_timeout: Duration::from_secs(60), ..bench.config() };
    let store = bench.open_with(config, &bench.domain).unwrap();
    let backend = store.backend();
    bench.take(&backend, "broken", 1).await;
    let fine = bench.take(&backend, "fine", 2).await;
    let mut other = bench.sql();
    other.batch_execute("UPDATE dlock_locks SET session = x'0102' WHERE name = 'broken'").unwrap();
    let before = store.grouping();
    // While another process holds the file, everything below queues up into one group; the first
    // of them may be taken alone.
    other.batch_execute("BEGIN IMMEDIATE").unwrap();
    let spawn = |name: &str, attempt| {
        let request = bench.wish(name, attempt);
        let (locks, by) = (backend.locks.clone(), bench.by());
        tokio::spawn(async move { locks.try_insert(request, by).await })
    };
    let (one, bad, two) = (spawn("one", 3), spawn("broken", 4), spawn("two", 5));
    let (locks, token, by) = (backend.locks.clone(), fine.token, bench.by());
    let release = tokio::spawn(async move { locks.delete_if_owner(&key("fine"), token, by).await });
    tokio::task::yield_now().await;
    other.batch_execute("ROLLBACK").unwrap();
    let refused = bad.await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvariantViolated(Invariant::RecordsReadable));
    let mut tokens = Vec::new();
    for shot in [one, two] {
        match shot.await.unwrap().unwrap() {
            Attempt::Granted(handle) => tokens.push(handle.token),
            Attempt::Held(_) => panic!("it was free"),
        }
    }
    assert!(tokens[0] != tokens[1] && tokens.iter().all(|token| *token > fine.token));
    assert!(release.await.unwrap().unwrap());
    assert!(bench.is_held(&backend, "one").await && bench.is_held(&backend, "two").await);
    assert!(!bench.is_held(&backend, "fine").await);
    let done = store.grouping().operations - before.operations;
    assert_eq!(done, 3, "each of the others was done once");
}

#[tokio::test]
async fn a_database_that_was_removed_or_replaced_grants_nothing_more() {
    let bench = Bench::new();
    let old = bench.open().unwrap().backend();
    let held = bench.take(&old, "a", 1).await;
    for name in ["", "-wal", "-shm", "-users"] {
        let path = bench.folder.path().join(format!("dlock.sqlite3{name}"));
        std::fs::remove_file(path).unwrap();
    }
    let incident = ErrorKind::InvariantViolated(Invariant::OneGrantPerKey);
    let refused = old.locks.try_insert(bench.wish("b", 2), bench.by()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.applied()), (incident, Applied::No));
    // Somebody begins anew in its place: the old one stays silent beside it.
    let new = bench.open().unwrap().backend();
    bench.take(&new, "a", 3).await;
    let refused = old.locks.extend(&held.key, held.token, bench.by()).await.unwrap_err();
    assert_eq!(refused.kind(), incident);
    let read = old.locks.read(&key("a"), Consistency::Linearizable, bench.by()).await;
    assert_eq!(read.unwrap_err().kind(), incident);
}

#[tokio::test]
async fn threads_end_with_the_store() {
    let bench = Bench::new();
    let store = bench.open().unwrap();
    let backend = store.backend();
    bench.take(&backend, "a", 1).await;
    let wal = bench.config().file().with_extension("sqlite3-wal");
    assert!(std::fs::metadata(&wal).unwrap().size() > 0);
    drop(store);
    drop(backend);
    // The last connection to close folds the log into the file and removes it: the threads that
    // owned them have been joined.
    assert!(!wal.exists());
}
