//! The text that `/metrics` answers, over the embedded store: the one test of this process, since
//! a process has one recorder.

#![expect(clippy::unwrap_used, reason = "a test that meets a surprise ends there")]
#![expect(clippy::panic, reason = "a test that meets a surprise ends there")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dlock::telemetry::Metered;
use dlock::telemetry::table::{ALL, BATCH_SIZE, Kind, Metric, Values};
use dlock::wiring::{self, EmbeddedConfig};
use dlock::{
    AcquireRequest, Acquired, LockHandle, LockKey, LockName, LockService, Namespace, OsEntropy,
    OwnerId, Reason, RevokeRequest, Service, ServiceConfig, SessionId, SessionRef, SystemClock,
    Ttl, prometheus,
};

/// One line of values: its name, labels and value.
struct Sample<'a> {
    name: &'a str,
    labels: BTreeMap<&'a str, &'a str>,
    value: f64,
}

fn samples(text: &str) -> Vec<Sample<'_>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line| -> Option<Sample<'_>> {
        let (metric, value) = str::rsplit_once(line, ' ')?;
        let (name, labels) = metric.split_once('{')?;
        let labels = labels.strip_suffix('}')?.split(',').map(|label| {
            let (name, value) = label.split_once('=')?;
            Some((name, value.trim_matches('"')))
        });
        Some(Sample { name, labels: labels.collect::<Option<_>>()?, value: value.parse().ok()? })
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// The metric that a line of values belongs to.
fn metric_of(name: &str) -> &'static Metric {
    let belongs = |metric: &&Metric| match (metric.kind, name.strip_prefix(metric.name)) {
        (Kind::Histogram(_), Some(suffix)) => ["_bucket", "_sum", "_count"].contains(&suffix),
        (_, suffix) => suffix == Some(""),
    };
    ALL.iter().find(belongs).unwrap_or_else(|| panic!("{name} is not in the table"))
}

/// What a server does in its life, a little of each.
async fn live(service: &Arc<Service>, clock: Arc<SystemClock>) -> Vec<SessionId> {
    let locks = Metered::new(service.clone(), clock, service.backend_id());
    let (key, ttl) = (
        LockKey::new(Namespace::default(), LockName::new("telling-name").unwrap()),
        Ttl::from_millis(30_000).unwrap(),
    );
    let session = locks.open_session(OwnerId::new("telling-owner").unwrap(), ttl).await.unwrap();
    let request = |owner: &str, max_wait| AcquireRequest {
        key: key.clone(),
        session: SessionRef::Private { owner: OwnerId::new(owner).unwrap(), ttl },
        attempt: None,
        max_wait,
    };
    let held: LockHandle = match locks.acquire(request("holder", Duration::ZERO)).await.unwrap() {
        Acquired::Granted(handle) => handle,
        Acquired::NotGranted { holder } => panic!("held by {holder:?}"),
    };
    let waited = locks.acquire(request("waiter", Duration::from_millis(60))).await.unwrap();
    assert!(matches!(waited, Acquired::NotGranted { .. }));
    locks.renew(&key, held.token, &held.session).await.unwrap();
    assert!(locks.release(&key, held.token, &held.session).await.unwrap().released);
    let revoke = RevokeRequest {
        actor: OwnerId::new("telling-operator").unwrap(),
        reason: Reason::new("a test").unwrap(),
        expected: None,
    };
    locks.revoke(&key, revoke).await.unwrap();
    vec![session.id, held.session]
}

#[tokio::test]
async fn c4_every_metric_is_described_and_only_the_tables_labels_appear() {
    let folder = tempfile::tempdir().unwrap();
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let config = EmbeddedConfig::at(folder.path());
    let backend = wiring::embedded(config, clock.clone(), entropy.clone()).unwrap();
    let service = Service::new(backend, clock.clone(), entropy, ServiceConfig::default());
    let text = prometheus::install(&service, clock.clone()).unwrap();
    let taken = prometheus::install(&service, clock.clone());
    assert!(matches!(taken, Err(prometheus::InstallError::Taken)));
    let secrets = live(&service, clock).await;
    let text = text();

    for metric in ALL {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        for line in [
            format!("# HELP {} {}", metric.name, metric.help),
            format!("# TYPE {} {kind}", metric.name),
        ] {
            assert_eq!(text.lines().filter(|shown| *shown == line).count(), 1, "{line}\n{text}");
        }
    }
    for Sample { name, mut labels, .. } in samples(&text) {
        let metric = metric_of(name);
        if let Kind::Histogram(buckets) = metric.kind
            && name.ends_with("_bucket")
        {
            let bound = labels.remove("le").unwrap();
            let known = buckets.iter().any(|bucket| bucket.to_string() == bound);
            assert!(known || bound == "+Inf", "{name}: {bound}");
        }
        assert_eq!(labels.len(), metric.labels.len(), "{name}: {labels:?}");
        for label in metric.labels {
            let known = match label.values {
                Values::Backend => labels[label.name] == "embedded",
                Values::Of(values) => values.contains(&labels[label.name]),
            };
            assert!(known, "{name}: {labels:?}");
        }
    }
    let value = |name: &str| samples(&text).iter().find(|s| s.name == name).map(|s| s.value);
    assert_eq!(value("dlock_sessions"), Some(1.0));
    assert_eq!(value("dlock_lock_held"), Some(0.0));
    // At least the session, the grant, the renewal, the release and the revoke.
    assert!(value(&format!("{BATCH_SIZE}_sum")) >= Some(5.0), "{text}");

    let hidden = secrets.into_iter().map(SessionId::expose);
    let told = ["telling", "holder", "waiter\""].map(str::to_owned);
    for word in hidden.chain(told) {
        assert!(!text.contains(&word), "{word}");
    }
    service.shutdown(Duration::from_secs(5)).await;
}
