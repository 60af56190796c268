//! The routes.

use std::sync::Arc;

use axum::{Router, http::Method, middleware};
use dlock_ports::{Clock, LockService};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    HttpConfig, app::App, docs, envelope, floor, health, host, locks, metrics, page,
    problem::Problem, sessions, spec,
};

/// All routes over a lock service, ready for [`serve`](crate::serve()) or for a server of one's own.
///
/// The service decides everything; this reads requests strictly and writes answers (C3). `clock`
/// must be the clock that the service's deadlines are on.
pub fn router(service: Arc<dyn LockService>, clock: Arc<dyn Clock>, config: HttpConfig) -> Router {
    let app = App::new(service, clock, config);
    let (described, _) = routes().split_for_parts();
    described
        .merge(docs::routes())
        .merge(page::assets())
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        // The last one added is the first that a request meets.
        .layer(middleware::from_fn_with_state(app.clone(), host::check))
        .layer(middleware::from_fn_with_state(app.clone(), envelope::wrap))
        .with_state(app)
}

/// The calls of C3, each with its description.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .merge(sessions::routes())
        .merge(locks::routes())
        .routes(routes!(floor::raise))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(metrics::metrics))
        .routes(routes!(spec::serve))
        .routes(routes!(page::page))
}

async fn no_such_route(method: Method) -> Problem {
    Problem::not_found().of(&method)
}

async fn no_such_method(method: Method) -> Problem {
    Problem::method_not_allowed().of(&method)
}
