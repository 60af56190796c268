//! The routes.

use std::sync::Arc;

use axum::{
    Router,
    http::Method,
    middleware,
    routing::{get, post},
};
use dlock_ports::{Clock, LockService};

use crate::{HttpConfig, app::App, envelope, health, host, locks, problem::Problem, sessions};

/// All routes over a lock service, ready for [`serve`](crate::serve()) or for a server of one's own.
///
/// The service decides everything; this reads requests strictly and writes answers (C3). `clock`
/// must be the clock that the service's deadlines are on.
pub fn router(service: Arc<dyn LockService>, clock: Arc<dyn Clock>, config: HttpConfig) -> Router {
    let app = App::new(service, clock, config);
    Router::new()
        .route("/v1/sessions", post(sessions::open))
        .route("/v1/sessions/keepalive", post(sessions::keep_alive))
        .route("/v1/sessions/look", post(sessions::look))
        .route("/v1/sessions/close", post(sessions::close))
        .route("/v1/locks/acquire", post(locks::acquire))
        .route("/v1/locks/renew", post(locks::renew))
        .route("/v1/locks/release", post(locks::release))
        .route("/v1/locks/inspect", get(locks::inspect))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        // The last one added is the first that a request meets.
        .layer(middleware::from_fn_with_state(app.clone(), host::check))
        .layer(middleware::from_fn_with_state(app.clone(), envelope::wrap))
        .with_state(app)
}

async fn no_such_route(method: Method) -> Problem {
    Problem::not_found().of(&method)
}

async fn no_such_method(method: Method) -> Problem {
    Problem::method_not_allowed().of(&method)
}
