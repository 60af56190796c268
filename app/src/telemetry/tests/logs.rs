//! Log events: their names, levels and fields, and what is in none of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock_domain::{FencingToken, Invariant, LockError};
use dlock_ports::{LockService as _, SessionRef};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::bench::{Bench, key, observe, private};

/// One log line.
#[derive(Clone, Debug)]
struct Line {
    level: Level,
    fields: BTreeMap<&'static str, String>,
}

/// Keeps every log line of this crate.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<Vec<Line>>>);

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("dlock")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Line { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut line);
        self.0.lock().unwrap().push(line);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// What was logged while this was done.
fn logged<F: Future<Output = ()>>(work: impl FnOnce(Arc<Bench>) -> F) -> Vec<Line> {
    let capture = Capture::default();
    tracing::subscriber::with_default(capture.clone(), || observe(work));
    let lines = capture.0.lock().unwrap().clone();
    lines.into_iter().filter(|line| line.fields.contains_key("event")).collect()
}

/// `LEVEL event field=value …`, the fields in alphabetical order.
fn told(lines: &[Line]) -> Vec<String> {
    let tell = |line: &Line| {
        let mut text = format!("{} {}", line.level, line.fields["event"]);
        for (name, value) in line.fields.iter().filter(|(name, _)| **name != "event") {
            text.push_str(&format!(" {name}={value}"));
        }
        text
    };
    lines.iter().map(tell).collect()
}

#[test]
fn c4_a_lock_is_followed_from_its_session_to_its_release() {
    let lines = logged(|bench| async move {
        let session = bench.open("me").await;
        let held = bench.hold("a", SessionRef::Id(session.id)).await;
        bench.metered.release(&held.key, held.token, &session.id).await.unwrap();
        bench.metered.release(&held.key, held.token, &session.id).await.unwrap();
        bench.metered.close_session(&session.id).await.unwrap();
        bench.metered.close_session(&session.id).await.unwrap();
    });
    assert_eq!(
        told(&lines),
        [
            "DEBUG session_opened owner=me",
            "DEBUG lock_acquired key=a namespace=default owner=me token=1",
            "DEBUG lock_released key=a namespace=default owner=me released=true token=1",
            "DEBUG lock_released key=a namespace=default released=false token=1",
            "DEBUG session_closed closed=true owner=me",
            "DEBUG session_closed closed=false",
        ]
    );
}

#[test]
fn c4_losses_revocations_and_incidents_stand_out() {
    let lines = logged(|bench| async move {
        let held = bench.hold("a", private("me")).await;
        bench.revoke("a", Some(4_711)).await.unwrap();
        bench.revoke("a", None).await.unwrap();
        bench.revoke("a", None).await.unwrap();
        bench.metered.renew(&held.key, held.token, &held.session).await.unwrap_err();
        let disk = std::io::Error::other("disk on fire");
        let incident = LockError::incident(Invariant::TokensRise, "told to").caused_by(disk);
        bench.store.fail(incident);
        bench.ask("b", private("me"), Duration::from_secs(9)).await.unwrap_err();
    });
    assert_eq!(
        told(&lines),
        [
            "DEBUG lock_acquired key=a namespace=default owner=me token=1",
            "INFO lock_revoked actor=operator key=a namespace=default outcome=mismatch token=1",
            "INFO lock_revoked actor=operator floor=2 key=a namespace=default outcome=revoked \
             owner=me token=1",
            "INFO lock_revoked actor=operator floor=3 key=a namespace=default outcome=free",
            "INFO lock_lost key=a namespace=default token=1",
            "ERROR lock_incident causes=disk on fire detail=told to invariant=INV-04 key=b \
             namespace=default owner=me",
        ]
    );
}

#[test]
fn c4_a_loss_that_a_keep_alive_finds_names_its_owner() {
    let lines = logged(|bench| async move {
        let session = bench.open("me").await;
        let held = bench.hold("a", SessionRef::Id(session.id)).await;
        bench.release_elsewhere(&held).await;
        let listed = [(held.key.clone(), held.token)];
        bench.metered.keep_session(&session.id, &listed).await.unwrap();
        let stray = FencingToken::from_user(99).unwrap();
        bench.metered.keep_session(&session.id, &[(key("b"), stray)]).await.unwrap();
    });
    assert_eq!(
        told(&lines)[2..],
        [
            "INFO lock_lost key=a namespace=default owner=me token=1",
            "INFO lock_lost key=b namespace=default token=99",
        ]
    );
}

#[test]
fn c4_a_fallback_says_for_whom_and_no_line_holds_a_session() {
    let ids = Arc::new(Mutex::new(Vec::new()));
    let lines = logged(|bench| {
        let ids = ids.clone();
        async move {
            bench.store.falls_back.store(true, Ordering::Relaxed);
            let session = bench.open("me").await;
            let held = bench.hold("a", SessionRef::Id(session.id)).await;
            let waiting = tokio::spawn({
                let bench = bench.clone();
                async move { bench.ask("a", private("waiter"), Duration::from_secs(60)).await }
            });
            while bench.store.fallbacks.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            bench.metered.release(&held.key, held.token, &session.id).await.unwrap();
            waiting.await.unwrap().unwrap();
            bench.metered.close_session(&session.id).await.unwrap();
            ids.lock().unwrap().push(session.id);
        }
    });
    let told = told(&lines);
    let fallback = "DEBUG wait_fallback key=a namespace=default owner=waiter";
    assert_eq!(told.iter().filter(|line| *line == fallback).count(), 1, "{told:#?}");
    let id = ids.lock().unwrap()[0];
    for line in &told {
        assert!(!line.contains(&id.expose()), "{line}");
        assert!(!line.contains(&id.bits().to_string()), "{line}");
    }
}
