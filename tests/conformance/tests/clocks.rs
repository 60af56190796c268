//! Wall clocks that jump and machines that sleep (C18, C19), from the guard through the client and
//! the server down to the embedded store: two machines in one process, each with a clock whose wall
//! is moved apart from its boot clock, and whose timers can be held still.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

use core::time::Duration;
use std::sync::{
    Arc, Once,
    atomic::{AtomicI64, Ordering},
};

use async_trait::async_trait;
use dlock::{Locks, Service, ServiceConfig, guard::LockGuard, keeper::LossReason};
use dlock_client::{RemoteConfig, RemoteLocks, ServerUrl};
use dlock_conformance::kit::{bounded, key, settle, until};
use dlock_domain::{LockKey, Moment, OwnerId, Result, Ttl, WallTime};
use dlock_embedded::{EmbeddedConfig, EmbeddedStore};
use dlock_http::{HttpConfig, ReadinessProbe};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_ports::{AcquireRequest, Acquired, Clock, LockService, SessionRef};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;

const TTL: Duration = Duration::from_secs(8);
const HOUR_MS: i64 = 3_600_000;

/// One machine: time passes on it as everywhere, and it has its own idea of when it was booted and
/// of what the wall says.
#[derive(Clone)]
struct Machine {
    time: ManualClock,
    booted_before: Duration,
    wall_off_ms: Arc<AtomicI64>,
    /// While it sleeps no timer of its wakes, whatever time it is.
    asleep: watch::Sender<bool>,
}

impl Machine {
    fn new(time: &ManualClock, booted_before: Duration) -> Self {
        let wall_off_ms = Arc::default();
        Self { time: time.clone(), booted_before, wall_off_ms, asleep: watch::Sender::new(false) }
    }

    /// The wall jumps; the boot clock does not.
    fn jump(&self, by_ms: i64) {
        let (boot, wall) = (self.now(), self.wall());
        self.wall_off_ms.fetch_add(by_ms, Ordering::SeqCst);
        let moved = self.wall().as_unix_millis().abs_diff(wall.as_unix_millis());
        assert_eq!((self.now(), moved), (boot, by_ms.unsigned_abs()));
    }
}

#[async_trait]
impl Clock for Machine {
    fn now(&self) -> Moment {
        self.time.now().after(self.booted_before)
    }

    fn wall(&self) -> WallTime {
        let off = self.wall_off_ms.load(Ordering::SeqCst);
        let wall = self.time.wall().as_unix_millis().saturating_add_signed(off);
        WallTime::from_unix_millis(wall)
    }

    async fn sleep_until(&self, at: Moment) {
        let mut asleep = self.asleep.subscribe();
        loop {
            self.time.sleep_until(at.before(self.booted_before)).await;
            if asleep.wait_for(|asleep| !asleep).await.is_ok() && self.now() >= at {
                return;
            }
        }
    }
}

/// A server on one machine, a holder on another.
struct World {
    time: ManualClock,
    server: Machine,
    client: Machine,
    service: Arc<Service>,
    locks: Locks,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

struct Probe(Arc<Service>);

#[async_trait]
impl ReadinessProbe for Probe {
    async fn check(&self) -> Result<()> {
        self.0.probe().await
    }
}

/// A client cannot be made before the process has a TLS provider, whatever the addresses are.
fn install_tls() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.install_default().expect("nobody else installs one");
    });
}

impl World {
    async fn new() -> Self {
        install_tls();
        let time = ManualClock::new();
        let server = Machine::new(&time, Duration::from_secs(5_000));
        let client = Machine::new(&time, Duration::from_secs(77));
        let (clock, entropy) = (Arc::new(server.clone()), Arc::new(SeededEntropy::new(18)));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = EmbeddedConfig::at(folder.path().join("store"));
        let store = EmbeddedStore::open(config, clock.clone(), entropy.clone()).expect("a store");
        let config = ServiceConfig::default();
        let service = Service::new(store.backend(), clock.clone(), entropy.clone(), config);

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let config = HttpConfig::new(Arc::new(Probe(Arc::clone(&service))), entropy);
        let router = dlock_http::router(Arc::clone(&service) as _, clock, config.clone());
        let stop = CancellationToken::new();
        let serve = dlock_http::serve(listener, router, config, stop.clone(), Duration::ZERO);
        let serving = tokio::spawn(serve);

        let (clock, entropy) = (Arc::new(client.clone()), Arc::new(SeededEntropy::new(19)));
        let url = ServerUrl::parse(&format!("http://{address}")).expect("an address of a server");
        let remote = RemoteLocks::new(RemoteConfig::new(vec![url]), clock.clone(), entropy.clone());
        let remote = Arc::new(remote.expect("a client"));
        let locks = Locks::builder(remote, clock, entropy).owner("holder").ttl(TTL);
        let locks = locks.build().expect("an owner and a lifetime");
        Self { time, server, client, service, locks, stop, serving, _folder: folder }
    }

    /// Lets time pass until a keep-alive is due, and waits until it has moved the deadline.
    async fn renewed(&self, lock: &LockGuard) {
        self.time.advance(TTL / 3 + TTL / 30);
        let before = lock.remaining();
        until("it is renewed", || lock.remaining() > before).await;
    }

    async fn token(&self, key: &LockKey) -> Option<u64> {
        let info = self.service.inspect(key).await.expect("an answer");
        info.map(|info| info.token.get())
    }

    /// A wait for a lock at the server itself.
    fn waiter(&self, key: &LockKey) -> JoinHandle<Result<Acquired>> {
        let (service, request) = (Arc::clone(&self.service), wanting(key, 3_600));
        tokio::spawn(async move { service.acquire(request).await })
    }
}

fn wanting(key: &LockKey, wait_s: u64) -> AcquireRequest {
    let owner = OwnerId::new("other").expect("an owner");
    let ttl = Ttl::from_duration(TTL).expect("a lifetime");
    AcquireRequest {
        key: key.clone(),
        session: SessionRef::Private { owner, ttl },
        attempt: None,
        max_wait: Duration::from_secs(wait_s),
    }
}

/// The holder keeps its lock through jumps of a wall clock, on either machine, and believes in it
/// to the millisecond as long as its lease allows, whatever the wall says at the end.
async fn holds_through_jumps(whose: impl Fn(&World) -> &Machine) {
    for last_jump in [-HOUR_MS, HOUR_MS] {
        let mut world = World::new().await;
        let lock = world.locks.lock("k").acquire().await.expect("free");
        for jump in [HOUR_MS, -HOUR_MS, -HOUR_MS, HOUR_MS, 0, last_jump] {
            whose(&world).jump(jump);
            settle().await;
            assert!(lock.is_held() && !lock.cancellation().is_cancelled(), "after {jump}");
            world.renewed(&lock).await;
            assert!(lock.remaining() <= TTL, "after {jump}");
            assert_eq!(world.token(lock.key()).await, Some(lock.token().get()), "after {jump}");
        }
        // Nobody answers any more.
        world.stop.cancel();
        (&mut world.serving).await.expect("no panic");
        let left = lock.remaining();
        whose(&world).jump(last_jump);
        let almost = left.saturating_sub(Duration::from_millis(6));
        world.time.advance(almost);
        settle().await;
        assert!(lock.is_held(), "no early loss");
        world.time.advance(left.saturating_sub(almost));
        assert!(!lock.is_held(), "no late belief");
        assert_eq!(lock.lost().await.reason, LossReason::DeadlinePassed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c18_the_holders_wall_clock_jumps() {
    bounded("c18", holds_through_jumps(|world| &world.client)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c18_the_servers_wall_clock_jumps() {
    bounded("c18", holds_through_jumps(|world| &world.server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c18_a_lease_ends_by_the_servers_boot_clock_alone() {
    bounded("c18", a_lease_ends()).await;
}

async fn a_lease_ends() {
    for jump in [HOUR_MS, -HOUR_MS] {
        let (world, key) = (World::new().await, key("k"));
        let first = world.service.acquire(wanting(&key, 0)).await.expect("an answer");
        let Acquired::Granted(first) = first else { panic!("{first:?}") };
        let waiter = world.waiter(&key);
        until("it waits", || world.service.load().waiting == 1).await;
        // Nobody keeps it. It ends neither with the jump nor an instant before its time.
        world.server.jump(jump);
        settle().await;
        let instant = Duration::from_millis(1);
        world.time.advance(TTL - instant);
        settle().await;
        assert!(!waiter.is_finished(), "no early end");
        assert_eq!(world.token(&key).await, Some(first.token.get()));
        world.server.jump(-2 * jump);
        world.time.advance(instant);
        assert_eq!(world.token(&key).await, None, "no late end");
        // Whoever waits looks again within moments.
        for _ in 0..100 {
            settle().await;
            if waiter.is_finished() {
                break;
            }
            world.time.advance(Duration::from_millis(10));
        }
        assert!(waiter.is_finished(), "the waiter sleeps beside a free lock");
        let next = waiter.await.expect("no panic").expect("an answer");
        let Acquired::Granted(next) = next else { panic!("{next:?}") };
        assert!(next.token > first.token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c19_after_a_sleep_longer_than_the_lease_the_guard_says_lost_at_once() {
    bounded("c19", a_guard_sleeps()).await;
}

async fn a_guard_sleeps() {
    let world = World::new().await;
    let lock = world.locks.lock("k").acquire().await.expect("free");
    world.renewed(&lock).await;
    let waiter = world.waiter(lock.key());
    until("another waits", || world.service.load().waiting == 1).await;

    // Its machine sleeps; the world goes on, and the lock changes hands.
    world.client.asleep.send_replace(true);
    for _ in 0..200 {
        settle().await;
        if waiter.is_finished() {
            break;
        }
        world.time.advance(TTL / 20);
    }
    let next = waiter.await.expect("no panic").expect("an answer");
    let Acquired::Granted(next) = next else { panic!("{next:?}") };
    assert!(next.token > lock.token());

    // No timer of its has run yet, and nobody has told it anything.
    assert!(!lock.is_held(), "from the first instruction after the resume");
    world.client.asleep.send_replace(false);
    let loss = lock.lost().await;
    assert_eq!((loss.token, loss.reason), (lock.token(), LossReason::DeadlinePassed));
    // By a task of its own, which may be a moment behind.
    lock.cancellation().cancelled().await;
    assert!(lock.release().await.is_err());
    assert_eq!(world.token(&key("k")).await, Some(next.token.get()), "its successor is untouched");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c19_work_is_stopped_at_once_after_such_a_sleep() {
    bounded("c19", work_sleeps()).await;
}

async fn work_sleeps() {
    let world = World::new().await;
    let (began, begins) = tokio::sync::oneshot::channel();
    let work = world.locks.with_lock("k", |_, cancelled| async move {
        began.send(()).expect("somebody waits");
        cancelled.cancelled().await;
        "told"
    });
    let work = tokio::spawn(work);
    begins.await.expect("it begins");
    world.client.asleep.send_replace(true);
    world.time.advance(TTL * 3);
    world.client.asleep.send_replace(false);
    let stopped = work.await.expect("no panic").expect_err("it lost its lock");
    let dlock::guard::WithLockError::Stopped { loss: Some(loss), .. } = stopped else {
        panic!("{stopped}");
    };
    assert_eq!(loss.reason, LossReason::DeadlinePassed);
}
