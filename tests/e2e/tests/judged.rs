//! The judged run: many clients over HTTP while the server, or the database, is killed again and again,
//! and every call they make held against the rules J1 to J4.
//!
//! `TEST_DLOCK_JUDGED_CYCLES` says how many cycles of acquire and release each client lives through;
//! the acceptance figure is 1000.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::Write,
    net::SocketAddr,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use dlock_e2e::{
    load::{Acquired, Caller, Clock, Progress, Tally, Told, Worker},
    server::Server,
};
use dlock_judge::{
    Recorder, Verdict,
    ids::Key,
    judge,
    rules::{self, EarlyExpiry},
};
use dlock_servers::{PostgresServer, PostgresVersion};

const CLIENTS: u32 = 64;
const KEYS: usize = 8;
const KILLS: u32 = 10;
const CYCLES: u64 = 150;
/// A handoff between servers takes longer there.
const CYCLES_ON_ETCD: u64 = 40;
/// And there, where waiters poll.
const CYCLES_ON_POSTGRES: u64 = 20;

/// A lifetime that no test outlives.
const LONG_MS: u64 = 3_600_000;

/// Calls for each cycle, refusals and failures included, that there is room to record.
const CALLS_PER_CYCLE: u64 = 100;

/// A run: what is to be done, and what is known of it on the way.
struct Run {
    clients: u32,
    keys: Vec<Key>,
    /// For each client.
    cycles: u64,
    recorder: Recorder,
    clock: Clock,
    progress: Progress,
    /// How often the server had been started before.
    epoch: AtomicU32,
}

impl Run {
    fn new(clients: u32, keys: usize, cycles: u64) -> Self {
        let room = u64::from(clients) * cycles * CALLS_PER_CYCLE;
        Self {
            clients,
            keys: (0..keys).map(|n| Key::named(&format!("job/{n}"))).collect(),
            cycles,
            recorder: Recorder::new(usize::try_from(room).unwrap()),
            clock: Clock::new(),
            progress: Progress::default(),
            epoch: AtomicU32::new(0),
        }
    }

    fn all_cycles(&self) -> u64 {
        u64::from(self.clients) * self.cycles
    }

    /// Lets all clients live, each with one of these servers, beside `meanwhile`.
    fn go(&self, addresses: &[SocketAddr], meanwhile: impl FnOnce()) -> Tally {
        thread::scope(|scope| {
            let live = |n: u32| {
                let address = addresses[n as usize % addresses.len()];
                let caller = Caller::new(address, n, &self.epoch, &self.recorder, &self.clock);
                let worker = Worker::new(caller, &self.keys, u64::from(n));
                scope.spawn(|| worker.live(self.cycles, &self.progress))
            };
            let workers: Vec<_> = (0..self.clients).map(live).collect();
            let _guard = self.progress.give_up_on_panic();
            meanwhile();
            let ends = workers.into_iter().map(|worker| worker.join().unwrap());
            ends.fold(Tally::default(), Tally::and)
        })
    }

    fn verdict(&self) -> Verdict {
        judge(&self.recorder.snapshot(), &rules::all(EarlyExpiry::Never))
    }
}

fn cycles(usual: u64) -> u64 {
    let asked = std::env::var("TEST_DLOCK_JUDGED_CYCLES");
    asked.map_or(usual, |number| number.parse().unwrap())
}

#[test]
fn j1_to_j4_hold_for_64_clients_while_the_server_is_killed_ten_times() {
    let place = tempfile::tempdir().unwrap();
    servers_killed("embedded", &mut [Server::start(place.path(), &[])], CYCLES);
}

/// Two servers on one cluster, killed in turn.
#[test]
fn j1_to_j4_hold_on_etcd_while_its_two_servers_are_killed_ten_times() {
    let place = tempfile::tempdir().unwrap();
    let etcd = dlock_e2e::etcd::Etcd::below(place.path());
    let options: Vec<&str> = etcd.options.iter().map(String::as_str).collect();
    let mut servers = [1, 2].map(|_| Server::start(place.path(), &options));
    servers_killed("etcd", &mut servers, CYCLES_ON_ETCD);
}

/// Two servers on one database, killed in turn.
#[test]
fn j1_to_j4_hold_on_postgres_while_its_two_servers_are_killed_ten_times() {
    let place = tempfile::tempdir().unwrap();
    let options = dlock_e2e::postgres::Postgres::beside(place.path()).options(place.path());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut servers = [1, 2].map(|_| Server::start(place.path(), &options));
    servers_killed("postgres", &mut servers, CYCLES_ON_POSTGRES);
}

/// The database is killed under two servers that go on.
#[test]
fn j1_to_j4_hold_while_old_postgres_is_killed_ten_times() {
    database_killed("postgres, killed", "SELECT 1");
}

/// So it is where the role would not wait for the disk (trap 27).
#[test]
fn trap_27_j1_to_j4_hold_while_old_postgres_of_a_careless_role_is_killed_ten_times() {
    let careless = "ALTER ROLE postgres SET synchronous_commit = off";
    database_killed("postgres of a careless role, killed", careless);
}

fn servers_killed(store: &str, servers: &mut [Server], usual: u64) {
    let addresses: Vec<SocketAddr> = servers.iter().map(Server::address).collect();
    let judged = judged(store, &addresses, usual, |kill| {
        let which = kill % servers.len();
        servers[which].kill();
        servers[which].restart();
    });
    judged.hold(&servers[0]);
}

fn database_killed(store: &str, first: &str) {
    let place = tempfile::tempdir().unwrap();
    let mut database = PostgresServer::start(PostgresVersion::Old);
    database.new_database("dlock");
    database.execute("dlock", first);
    let url = database.url("dlock");
    let options = ["--backend", "postgres", "--postgres-url", &url];
    let servers = [1, 2].map(|_| Server::start(place.path(), &options));
    let addresses = servers.each_ref().map(Server::address);
    let judged = judged(store, &addresses, CYCLES_ON_POSTGRES, |_| {
        database.kill();
        database.restart();
    });
    judged.hold(&servers[0]);
}

/// What is known of a run that is over.
struct Judged {
    verdict: Verdict,
    tally: Tally,
    kills: u32,
    all: u64,
}

/// Lets the clients live while ten times something is killed and started again.
fn judged(
    store: &str,
    addresses: &[SocketAddr],
    usual: u64,
    mut kill_and_restart: impl FnMut(usize),
) -> Judged {
    let cycles = cycles(usual);
    let run = Run::new(CLIENTS, KEYS, cycles);
    // By progress and not by time, so that every kill meets clients at work.
    let tally = run.go(addresses, || {
        for kill in 1..=KILLS {
            let at = run.all_cycles() * u64::from(kill) / u64::from(KILLS + 1);
            if !run.progress.reach(at) {
                return;
            }
            run.epoch.fetch_add(1, Ordering::Relaxed);
            kill_and_restart(kill as usize);
        }
    });

    let seconds = run.clock.now().0 / 1_000_000_000;
    let (verdict, kills) = (run.verdict(), run.epoch.load(Ordering::Relaxed));
    let mut err = std::io::stderr();
    writeln!(
        err,
        "judged run on {store}: {CLIENTS} clients, {KEYS} keys, {cycles} cycles each, {kills} \
         kills and restarts, {seconds} s\n{tally:?}\n{verdict}"
    )
    .unwrap();
    Judged { verdict, tally, kills, all: run.all_cycles() }
}

impl Judged {
    fn hold(self, server: &Server) {
        let Self { verdict, tally, kills, all } = self;
        assert!(verdict.is_clean(), "{verdict}\n{}", server.log());
        assert_eq!(tally.lost_early, 0, "a lock was called lost before its deadline");
        // It did see something.
        assert_eq!((kills, tally.cycles), (KILLS, all));
        assert!(verdict.seen.grants >= all, "{verdict}");
        assert!(verdict.seen.windows >= all / 2, "{verdict}");
        assert!(verdict.seen.unknown > 0, "no kill cut anything: {verdict}");
    }
}

/// The control: were the judge or what is recorded blind, this would be clean, too.
#[test]
fn two_stores_that_serve_the_same_lock_are_found_out() {
    let run = Run::new(2, 1, 100);
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let servers = places.each_ref().map(|place| Server::start(place.path(), &[]));
    let [one, two] = servers.each_ref().map(Server::address);
    let [one, two] = [(one, 1), (two, 2)]
        .map(|(at, n)| Caller::new(at, n, &run.epoch, &run.recorder, &run.clock));
    let mut attempts = 0..;
    let mut acquire = |caller: &Caller<'_>| match caller.acquire(
        &run.keys[0],
        attempts.next().unwrap(),
        LONG_MS,
        0,
    ) {
        Told::Is(Acquired::Granted(grant)) => grant,
        other => panic!("{other:?}"),
    };
    // Both hold it, with the same token (J1, J3).
    let (first, second) = (acquire(&one), acquire(&two));
    assert_eq!(first.token, second.token);
    // A later grant has a token that is not greater (J2).
    assert!(matches!(one.release(&first), Told::Is(true)));
    let newer = acquire(&one);
    assert!(matches!(two.release(&second), Told::Is(true)));
    let stale = acquire(&two);
    assert_eq!(stale.token, newer.token);
    // An earlier token goes on working (J4).
    assert!(matches!(one.release(&newer), Told::Is(true)));
    assert!(acquire(&one).token > stale.token);
    assert!(matches!(two.renew(&stale), Told::Is(Some(_))));
    let verdict = run.verdict();
    for rule in ["J1", "J2", "J3", "J4"] {
        assert!(verdict.of_rule(rule).count() > 0, "{rule} saw nothing: {verdict}");
    }
}
