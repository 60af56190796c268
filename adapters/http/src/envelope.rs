//! What happens around every request: the moment of its arrival, its id, its span, the headers of
//! its answer, and the catching of panics.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::{Instrument, Span, field, info_span};

use crate::{app::App, panic, problem::Problem, received::Received, request_id, trace};

/// The outermost layer.
pub(crate) async fn wrap(State(app): State<App>, mut request: Request, next: Next) -> Response {
    // First of all: everything that follows takes time which the client's `valid_ms` must include.
    let received = Received(app.clock().now());
    request.extensions_mut().insert(received);

    let (id, id_header) = request_id::choose(request.headers(), &*app.config().entropy);
    let method = request.method().clone();
    let span = span(&method, request.extensions().get::<MatchedPath>(), &id);
    if let Some(trace) = trace::id(request.headers()) {
        span.record("trace_id", trace);
    }
    let answer = async {
        let mut response = match panic::caught(next.run(request)).await {
            Ok(response) => response,
            Err(panic::Panicked) => {
                tracing::error!("the handler panicked");
                Problem::panicked().of(&method).into_response()
            }
        };
        let headers = response.headers_mut();
        headers.insert(request_id::X_REQUEST_ID, id_header);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Span::current().record("status", response.status().as_u16());
        tracing::debug!("answered");
        response
    };
    answer.instrument(span).await
}

/// Method, route, id, the trace's id if there is one, and later the status. The route and not the path: a client that puts a
/// secret into a path by mistake must not find it in a log.
fn span(method: &Method, route: Option<&MatchedPath>, id: &str) -> Span {
    let method = match *method {
        Method::GET | Method::POST | Method::HEAD => method.as_str(),
        _ => "other",
    };
    let path = route.map_or("none", MatchedPath::as_str);
    info_span!(
        "http",
        method,
        path,
        request_id = id,
        trace_id = field::Empty,
        status = field::Empty
    )
}
