//! How waits end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use dlock_ports::{Acquired, LockService as _};

use super::bench::{observe, private};
use crate::telemetry::outcome::WaitOutcome;
use crate::telemetry::table;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn c4_a_wait_is_timed_as_a_whole_by_what_ended_it() {
    let seen = observe(|bench| async move {
        for end in [WaitOutcome::Released, WaitOutcome::Deadline, WaitOutcome::Interrupted] {
            let held = bench.hold("a", private("holder")).await;
            let waiting = tokio::spawn({
                let bench = bench.clone();
                async move { bench.ask("a", private("waiter"), Duration::from_secs(9)).await }
            });
            bench.until_somebody_waits("a").await;
            bench.clock.advance(Duration::from_secs(2));
            match end {
                WaitOutcome::Deadline => bench.clock.advance(Duration::from_secs(7)),
                WaitOutcome::Interrupted => waiting.abort(),
                _ => {
                    bench.metered.release(&held.key, held.token, &held.session).await.unwrap();
                }
            }
            let _ = waiting.await;
            bench.until_nobody_waits().await;
            // The next round finds the lock free.
            bench.revoke("a", None).await.unwrap();
        }
    });
    assert_eq!(seen.samples(table::WAIT, "released"), [2.0]);
    assert_eq!(seen.samples(table::WAIT, "deadline"), [9.0]);
    assert_eq!(seen.samples(table::WAIT, "interrupted"), [2.0]);
    assert_eq!(seen.samples(table::WAIT, "fallback"), [0.0; 0]);
}

#[test]
fn c4_a_fallback_counts_on_top_of_how_the_wait_then_ends() {
    let seen = observe(|bench| async move {
        bench.store.falls_back.store(true, Ordering::Relaxed);
        let held = bench.hold("a", private("holder")).await;
        let waiting = tokio::spawn({
            let bench = bench.clone();
            async move { bench.ask("a", private("waiter"), MINUTE).await }
        });
        while bench.store.fallbacks.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        bench.metered.release(&held.key, held.token, &held.session).await.unwrap();
        assert!(matches!(waiting.await.unwrap(), Ok(Acquired::Granted(_))));
        assert_eq!(bench.store.fallbacks.load(Ordering::Relaxed), 1);
    });
    assert_eq!(seen.samples(table::WAIT, "fallback").len(), 1);
    assert_eq!(seen.samples(table::WAIT, "released").len(), 1);
}
