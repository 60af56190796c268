//! Metrics and log events (C4).
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`table`] | every metric: name, help, unit, labels with their closed sets, buckets |
//! | [`outcome`] | what a call or a wait came to, told from its result alone |
//! | [`Metered`] | a lock service that times its calls |
//! | `store` | a backend that counts its errors, and reports incidents |
//! | `events` | every log line that has an `event` |
//!
//! [`Service`] counts waits, store errors and incidents by itself; whoever wants the calls timed
//! wraps it in [`Metered`]. All of it goes to whatever `metrics` recorder the program has
//! installed, and nowhere if there is none: only the binary installs one of its own
//! (`dlock::prometheus`).
//!
//! Deliberately absent: labels that name a lock, an owner, a session or a token. Their number has
//! no bound, and a session id is a secret.

pub(crate) mod events;
mod metered;
pub mod outcome;
pub(crate) mod store;
pub mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use metered::Metered;

use crate::Service;

/// Tells the installed recorder every metric's help and unit. Call it once, after installing one.
pub fn describe() {
    for metric in table::ALL {
        let (name, unit, help) = (metric.name, metric.unit, metric.help);
        match metric.kind {
            table::Kind::Counter => metrics::describe_counter!(name, unit, help),
            table::Kind::Gauge => metrics::describe_gauge!(name, unit, help),
            table::Kind::Histogram(_) => metrics::describe_histogram!(name, unit, help),
        }
    }
}

/// Sets what has a value before anything happens: the build, and the counters at zero, since a
/// counter that is absent until its first increment hides that increment from whoever watches it.
pub fn start(backend: &'static str) {
    let version = env!("CARGO_PKG_VERSION");
    metrics::gauge!(table::BUILD_INFO, "backend" => backend, "version" => version).set(1.0);
    metrics::counter!(table::INCIDENTS, "backend" => backend).increment(0);
    for kind in table::ERROR_KINDS {
        metrics::counter!(table::STORE_ERRORS, "backend" => backend, "kind" => *kind).increment(0);
    }
}

/// Sets the gauges to what a service sees now; call it before the recorder is read. It looks at
/// every grant that the service counts, so not for each request.
pub fn set_gauges(service: &Service) {
    let (backend, gauges) = (service.backend_id(), service.gauges());
    metrics::gauge!(table::HELD, "backend" => backend).set(number(gauges.held));
    metrics::gauge!(table::WAITERS, "backend" => backend).set(number(gauges.waiters));
    metrics::gauge!(table::SESSIONS, "backend" => backend).set(number(gauges.sessions));
}

pub(crate) fn took(
    metric: &'static str,
    backend: &'static str,
    outcome: &'static str,
    took: Duration,
) {
    metrics::histogram!(metric, "backend" => backend, "outcome" => outcome)
        .record(took.as_secs_f64());
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
