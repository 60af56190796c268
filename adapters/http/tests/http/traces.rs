//! The trace that a request belongs to is in its span (C4).

use std::sync::{Arc, Mutex};

use axum::http::{HeaderValue, Method};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

use crate::support::{request, send, unasked};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Keeps the trace ids that spans were given.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Visit for Seen {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "trace_id" {
            self.0.lock().unwrap().push(value.to_owned());
        }
    }
    fn record_debug(&mut self, _: &Field, _: &dyn core::fmt::Debug) {}
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Seen {
    fn on_new_span(&self, span: &span::Attributes<'_>, _: &span::Id, _: Context<'_, S>) {
        span.record(&mut self.clone());
    }
    fn on_record(&self, _: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
        values.record(&mut self.clone());
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_valid_traceparent_names_the_trace_and_another_is_ignored() {
    // As in `secrets`: else a span that another test's thread meets first stays silent here.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let seen = Seen::default();
    let subscriber = tracing_subscriber::registry().with(seen.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let router = unasked();
    for (value, expected) in [
        (format!("00-{TRACE}-00f067aa0ba902b7-01"), vec![TRACE.to_owned()]),
        (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), vec![]),
        ("nonsense".to_owned(), vec![]),
    ] {
        let mut traced = request(Method::GET, "/livez", "");
        traced.headers_mut().insert("traceparent", HeaderValue::from_str(&value).unwrap());
        assert_eq!(send(&router, traced).await.status, 200);
        assert_eq!(core::mem::take(&mut *seen.0.lock().unwrap()), expected, "{value}");
    }
}
