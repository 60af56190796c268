//! C18: only the database's clock counts. (Through the guard and the server, on the embedded store:
//! `tests/conformance/tests/clocks.rs`.)

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use dlock_conformance::{
    SystemClock,
    kit::{Caller, attempt, granted, held, key, millis, private_for},
};
use dlock_domain::{Moment, WallTime};
use dlock_memory::SeededEntropy;
use dlock_ports::Clock;
use dlock_postgres::PostgresStore;

use crate::kit::{Place, bytes};

const HOUR_MS: i64 = 3_600_000;

/// A lock server's machine, whose wall clock is set by hand.
#[derive(Clone, Default)]
struct Machine {
    true_one: SystemClock,
    off_ms: Arc<AtomicI64>,
}

#[async_trait]
impl Clock for Machine {
    fn now(&self) -> Moment {
        self.true_one.now()
    }

    fn wall(&self) -> WallTime {
        let off = self.off_ms.load(Ordering::SeqCst);
        let wall = self.true_one.wall().as_unix_millis().saturating_add_signed(off);
        WallTime::from_unix_millis(wall)
    }

    async fn sleep_until(&self, at: Moment) {
        self.true_one.sleep_until(at).await;
    }
}

async fn caller(place: &mut Place, machine: &Machine) -> Caller {
    let entropy = Arc::new(SeededEntropy::new(place.next()));
    let clock = Arc::new(machine.clone());
    let store = PostgresStore::connect(place.config(), clock.clone(), entropy).await.unwrap();
    Caller::on(store.backend(), clock, Duration::from_secs(20))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c18_the_lock_servers_wall_clocks_jump() {
    // The naive one lets the server write the time at which the lease ends, and another one read it.
    let (ahead, behind) = (Machine::default(), Machine::default());
    ahead.off_ms.store(HOUR_MS, Ordering::SeqCst);
    behind.off_ms.store(-HOUR_MS, Ordering::SeqCst);
    let ends = behind.wall().after(Duration::from_secs(60));
    assert!(ahead.wall() > ends, "it has ended before it began");

    let mut place = Place::new().await;
    let (a, b) = (caller(&mut place, &ahead).await, caller(&mut place, &behind).await);
    let minute = millis(60_000);
    for (holder, other, of_holder) in [(&a, &b, &ahead), (&b, &a, &behind)] {
        let handle = holder.take(&key("k"), &private_for("holder", minute)).await;
        for jump in [HOUR_MS, -HOUR_MS, 0] {
            of_holder.off_ms.fetch_add(jump, Ordering::SeqCst);
            held(other.insert(&key("k"), &private_for("next", minute), attempt()).await);
            assert_eq!(other.reap(100).await, 0, "no early end");
            let before = holder.now();
            let kept = holder.extend(&handle).await.unwrap();
            let believed = kept.client_deadline.since(before);
            assert!(believed <= Duration::from_secs(60), "no late belief: {believed:?}");
            assert!(believed > Duration::from_secs(30), "no early loss: {believed:?}");
            let look = other.read(&key("k")).await.unwrap();
            let left = look.server_expiry.since(other.wall());
            assert!(left <= Duration::from_secs(60), "shown by its own clock: {left:?}");
        }
        assert!(holder.release(&handle).await);
    }

    // It ends when the database says so, and for everybody then.
    let short = a.take(&key("short"), &private_for("holder", millis(1_000))).await;
    let ended = format!(
        "SELECT count(*) FROM dlock_sessions WHERE id = {} AND expires_at > clock_timestamp()",
        bytes(short.session)
    );
    place.eye.becomes(&ended, 0).await;
    assert!(a.now() > short.client_deadline, "its holder knew before");
    assert!(a.extend(&short).await.is_none());
    let next = granted(b.insert(&key("short"), &private_for("next", minute), attempt()).await);
    assert!(next.token > short.token);
}
