//! What stores share that keep their own time.
//!
//! A case mostly waits for leases to end, so a few of them run at once, each from a seed of its own.

use std::time::Duration;

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_domain::{Deadline, Moment};
use dlock_model::{Expiry, Keep, OwnTime, Subject};
use dlock_ports::{Backend, Clock as _};

struct RealTime;

#[async_trait]
impl OwnTime for RealTime {
    fn now(&self) -> Moment {
        SystemClock::new().now()
    }

    fn deadline(&self, budget: Duration) -> Deadline {
        Deadline::at(self.now().after(budget))
    }

    async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A store on this machine's clock, whose leases end somewhere around their time.
pub(crate) fn subject(backend: Backend, late: Duration) -> Subject {
    Subject {
        backend,
        expiry: Expiry::Window {
            early: Duration::from_millis(200),
            late,
            time: Box::new(RealTime),
        },
        drops_in_order: false,
        guard: Box::new(Keep(())),
    }
}

/// Random sequences, each from its seed.
macro_rules! from_seeds {
    ($harness:expr; $($name:ident: $seed:literal,)*) => {
        $(#[test]
        fn $name() {
            let seen: dlock_model::Seen =
                dlock_model::search(&$harness, dlock_model::Judges::Both, $seed)
                    .unwrap_or_else(|failure| panic!("{failure}"));
            assert!(seen.contains_key("granted"), "{seen:#?}");
        })*
    };
}
pub(crate) use from_seeds;
