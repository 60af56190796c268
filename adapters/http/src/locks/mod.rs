//! Locks, one file a call (C3).
//!
//! None of these breaks when its client hangs up: the service runs what it hands to the store in
//! tasks of its own, so dropping a handler gives up the answer only (trap 41).

mod acquire;
pub(crate) mod grant;
mod inspect;
pub(crate) mod list;
pub(crate) mod release;
mod renew;
pub(crate) mod revoke;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::App;

/// These routes, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(acquire::acquire))
        .routes(routes!(renew::renew))
        .routes(routes!(release::release))
        .routes(routes!(inspect::inspect))
        .routes(routes!(list::list))
        .routes(routes!(revoke::revoke))
}
