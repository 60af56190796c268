//! What a service says it granted and has not seen end.

use std::time::Duration;

use dlock_domain::{AttemptId, Namespace, TokenFloor};
use dlock_ports::{AcquireRequest, LockService as _, SessionRef};

use super::bench::{Bench, TTL, key, observe, private};
use crate::Gauges;
use crate::telemetry::{set_gauges, table};

fn shown(bench: &Bench) -> (usize, usize) {
    let Gauges { held, waiters: _, sessions } = bench.service.gauges();
    (held, sessions)
}

#[test]
fn c4_the_gauges_are_set_from_the_service() {
    let seen = observe(|bench| async move {
        let session = SessionRef::Id(bench.open("me").await.id);
        for name in ["a", "b"] {
            bench.hold(name, session.clone()).await;
        }
        bench.hold("c", private("other")).await;
        let waiting = tokio::spawn({
            let bench = bench.clone();
            async move { bench.ask("a", private("waiter"), Duration::from_secs(9)).await }
        });
        bench.until_somebody_waits("a").await;
        set_gauges(&bench.service);
        waiting.abort();
    });
    assert_eq!(seen.gauge(table::HELD), Some(3.0));
    assert_eq!(seen.gauge(table::WAITERS), Some(1.0));
    assert_eq!(seen.gauge(table::SESSIONS), Some(1.0), "a private session is the lock's");
}

#[test]
fn every_end_that_is_seen_is_counted() {
    observe(|bench| async move {
        let mine = bench.open("me").await;
        let by_me = SessionRef::Id(mine.id);
        let mut held = Vec::new();
        for name in ["released", "revoked", "lost", "floored", "closed"] {
            held.push(bench.hold(name, by_me.clone()).await);
        }
        assert_eq!(shown(&bench), (5, 1));
        bench.metered.release(&held[0].key, held[0].token, &mine.id).await.unwrap();
        assert_eq!(shown(&bench), (4, 1));
        bench.revoke("revoked", None).await.unwrap();
        assert_eq!(shown(&bench), (3, 1));

        // Ended behind the server's back: a keep-alive finds out.
        bench.release_elsewhere(&held[2]).await;
        let listed = vec![(held[2].key.clone(), held[2].token)];
        assert_eq!(bench.metered.keep_session(&mine.id, &listed).await.unwrap().lost, listed);
        assert_eq!(shown(&bench), (2, 1));
        bench.release_elsewhere(&held[3]).await;
        bench.metered.renew(&held[3].key, held[3].token, &mine.id).await.unwrap_err();
        assert_eq!(shown(&bench), (1, 1));

        bench.metered.close_session(&mine.id).await.unwrap();
        assert_eq!(shown(&bench), (0, 0));

        // Attempts that are settled, and floors.
        let attempt = AttemptId::from_bits(5);
        let request = AcquireRequest {
            key: key("settled"),
            session: private("x"),
            attempt: Some(attempt),
            max_wait: Duration::ZERO,
        };
        bench.metered.acquire(request).await.unwrap();
        bench.hold("raised", private("x")).await;
        assert_eq!(shown(&bench), (2, 0));
        bench.metered.forget(&key("settled"), &private("x"), attempt).await.unwrap();
        assert_eq!(shown(&bench), (1, 0));
        let floor = TokenFloor::new(1_000).unwrap();
        bench.metered.raise_floor(&Namespace::default(), floor).await.unwrap();
        assert_eq!(shown(&bench), (0, 0));
    });
}

#[test]
fn a_lease_that_passes_unextended_is_an_end_and_an_extended_one_is_not() {
    observe(|bench| async move {
        let (kept, left) = (bench.open("kept").await, bench.open("left").await);
        bench.hold("a", SessionRef::Id(kept.id)).await;
        bench.hold("b", SessionRef::Id(left.id)).await;
        let renewed = bench.hold("c", private("renewed")).await;
        bench.clock.advance(TTL / 2);
        bench.metered.keep_session(&kept.id, &[]).await.unwrap();
        bench.metered.renew(&renewed.key, renewed.token, &renewed.session).await.unwrap();
        bench.clock.advance(TTL / 2);
        assert_eq!(shown(&bench), (2, 1));
        bench.clock.advance(TTL / 2);
        assert_eq!(shown(&bench), (0, 0));
    });
}

#[test]
fn a_session_that_is_found_dead_is_an_end() {
    observe(|bench| async move {
        let session = bench.open("me").await;
        bench.hold("a", SessionRef::Id(session.id)).await;
        // Its lease has not passed, as far as it was seen here: the look is what finds out.
        bench.close_elsewhere(&session.id).await;
        assert_eq!(shown(&bench), (1, 1));
        bench.metered.look_session(&session.id).await.unwrap_err();
        assert_eq!(shown(&bench), (0, 0));
    });
}
