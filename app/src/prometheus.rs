//! Metrics for Prometheus: the recorder of the binary, and its text (C4).
//!
//! A process has one recorder. A library's user brings their own; this one is for `dlock serve`.

use std::sync::Arc;
use std::time::Duration;

use dlock_ports::Clock;
use metrics::SetRecorderError;
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio_util::sync::CancellationToken;

use crate::Service;
use crate::telemetry::{describe, set_gauges, start, table};

/// How often what was recorded is folded into buckets: bounds what waits between two scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

/// Writes all metrics in Prometheus' text format, version 0.0.4, without waiting for anything.
pub type Text = Arc<dyn Fn() -> String + Send + Sync>;

/// Why the recorder could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The table has a histogram whose buckets the recorder refuses.
    #[error("the table of metrics is wrong")]
    Table(#[from] BuildError),
    /// The process has a recorder already.
    #[error("this process records its metrics elsewhere already")]
    Taken,
}

/// A recorder with the table's buckets, so that histograms are never summaries.
///
/// # Errors
/// `Table`, if the table is wrong.
pub fn recorder() -> Result<PrometheusRecorder, InstallError> {
    let mut builder = PrometheusBuilder::new();
    for metric in table::ALL {
        if let table::Kind::Histogram(buckets) = metric.kind {
            builder =
                builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)?;
        }
    }
    Ok(builder.build_recorder())
}

/// Makes this process record its metrics for Prometheus, and answers what writes them, the
/// service's gauges as of that moment. Must be called within a tokio runtime: a task keeps the
/// recorder small, and ends when the last clone of the answer is dropped.
///
/// # Errors
/// `Taken`, if the process has a recorder already.
pub fn install(service: &Arc<Service>, clock: Arc<dyn Clock>) -> Result<Text, InstallError> {
    let recorder = recorder()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)
        .map_err(|_: SetRecorderError<PrometheusRecorder>| InstallError::Taken)?;
    describe();
    start(service.backend_id());
    let ended = CancellationToken::new();
    tokio::spawn(upkeep(handle.clone(), clock, ended.clone()));
    let (service, ending) = (Arc::clone(service), ended.drop_guard());
    Ok(Arc::new(move || {
        // Owned by the closure, so that the task lives as long as anybody can ask for the text.
        let _ = &ending;
        set_gauges(&service);
        handle.render()
    }))
}

async fn upkeep(handle: PrometheusHandle, clock: Arc<dyn Clock>, ended: CancellationToken) {
    loop {
        // Both only wait: nothing is lost by dropping either.
        tokio::select! {
            () = ended.cancelled() => return,
            () = clock.sleep_until(clock.now().after(UPKEEP)) => handle.run_upkeep(),
        }
    }
}
