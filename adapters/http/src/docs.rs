//! The API's documentation for people: Swagger UI, out of this binary.
//!
//! It is an asset and no call of C3, so it is not part of `openapi.json`.

use std::{borrow::Cow, sync::Arc};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use utoipa_swagger_ui::{Config, serve};

use crate::{app::App, problem::Problem, secure};

/// The files that the page is made of. The distribution has more: other builds of the same, and
/// the landing page of a login that this API does not have.
const FILES: [&str; 7] = [
    "index.css",
    "swagger-ui.css",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-initializer.js",
    "favicon-16x16.png",
    "favicon-32x32.png",
];

/// `/docs/`, its files, and the way there without the last slash.
pub(crate) fn routes() -> Router<App> {
    let start = Router::new()
        .route("/docs", get(redirect))
        .route("/docs/", get(|| async { file("index.html") }));
    FILES.into_iter().fold(start, |router, name| {
        router.route(&format!("/docs/{name}"), get(move || async move { file(name) }))
    })
}

/// The page's addresses are relative to its folder.
async fn redirect() -> Response {
    let there = [(header::LOCATION, HeaderValue::from_static("/docs/"))];
    (StatusCode::PERMANENT_REDIRECT, there).into_response()
}

fn file(name: &str) -> Response {
    let Ok(Some(file)) = serve(name, Arc::new(config())) else {
        // They are compiled in, so one that is missing is a mistake of ours.
        return Problem::panicked().of_read().into_response();
    };
    let Ok(media) = HeaderValue::from_str(&file.content_type) else {
        return Problem::panicked().of_read().into_response();
    };
    let bytes = match file.bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    };
    secure::answer(media, secure::DOCS, Body::from(bytes))
}

/// No address bar for documents from elsewhere, no settings from the page's own address, and no
/// validator, which would be somebody else's server.
fn config() -> Config<'static> {
    Config::from("/openapi.json")
        .use_base_layout()
        .query_config_enabled(false)
        .validator_url("none")
        .try_it_out_enabled(true)
}
