//! The API's description, OpenAPI 3.1, made from the handlers themselves.
//!
//! Each handler carries its own part (`#[utoipa::path]`): path, parameters, body, success, and the
//! failures that are its own. What every call can answer besides is added here, once, from the
//! table of problem kinds that the answers are made from. The repository's `openapi.json` is this
//! document; a test compares them.

pub(crate) mod failures;
pub(crate) mod fields;
mod headers;
mod problem;
pub(crate) mod shapes;

use std::sync::LazyLock;

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::Response,
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        InfoBuilder, License, OpenApi, Ref, RefOr,
        path::{HttpMethod, Operation, PathItem},
        tag::TagBuilder,
    },
};

use self::{failures::Failure, problem::ProblemSchema};
use crate::router;

const DESCRIPTION: &str = "Distributed locks with leases and fencing tokens.\n\n\
    Times are in milliseconds and tokens are JSON integers. `null` in an optional field is the \
    same as leaving it out; unknown and duplicate fields are refused, and so are unknown and \
    repeated query parameters. Integers are written in digits only: `1.0`, `1e3` and `\"1\"` are \
    refused. Lengths of texts count bytes of UTF-8.\n\n\
    Every failure is an RFC 9457 problem document, `application/problem+json`; its `type` is \
    `urn:dlock:problem:` and a kind. What cannot be read as HTTP at all has an empty answer, 400 \
    or 431, or none. The `Accept` header has no influence. `HEAD` works wherever `GET` does.\n\n\
    `valid_ms` counts from the moment at which the server received the request, so counting it \
    from the moment at which the request was sent is safe.";

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let (_, collected) = router::routes().split_for_parts();
    let mut text = complete(collected).to_pretty_json().unwrap_or_default();
    text.push('\n');
    text
});

/// The API's description as JSON text (C3, `/openapi.json`).
#[must_use]
pub fn openapi() -> &'static str {
    &DOCUMENT
}

/// `GET /openapi.json`.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "server",
    operation_id = "openapi",
    summary = "This description",
    description = "OpenAPI 3.1.",
    responses((status = 200, description = "This document", content_type = "application/json", body = Object)),
)]
pub(crate) async fn serve() -> Response {
    let mut response = Response::new(Body::from(openapi()));
    let media = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

/// Adds what the handlers don't say themselves.
fn complete(mut api: OpenApi) -> OpenApi {
    api.info = InfoBuilder::new()
        .title("dlock")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(License::new(env!("CARGO_PKG_LICENSE"))))
        .build();
    let tag = |name: &str, what: &str| TagBuilder::new().name(name).description(Some(what)).build();
    api.tags = Some(vec![
        tag("sessions", "A lease, and whoever keeps it alive"),
        tag("locks", "Grants under a lease"),
        tag("floors", "What every later token must exceed"),
        tag("server", "The server itself"),
    ]);
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in operations(item) {
            add_failures(operation, &method, path);
            headers::add(operation);
        }
    }
    let mut components = api.components.take().unwrap_or_default();
    components.schemas.insert(ProblemSchema::name().into(), ProblemSchema::schema());
    for failure in failures::ALL {
        components.responses.insert(failure.name.to_owned(), RefOr::T(failure.response()));
    }
    headers::define(&mut components);
    api.components = Some(components);
    api
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    let get = item.get.as_mut().map(|operation| (HttpMethod::Get, operation));
    let post = item.post.as_mut().map(|operation| (HttpMethod::Post, operation));
    get.into_iter().chain(post)
}

/// What can go wrong around every handler, with every body, and in every call of the service.
fn add_failures(operation: &mut Operation, method: &HttpMethod, path: &str) {
    let mut add = |failure: &Failure| {
        let reference = RefOr::Ref(Ref::from_response_name(failure.name));
        operation.responses.responses.entry(failure.status_text()).or_insert(reference);
    };
    failures::AROUND.iter().for_each(&mut add);
    let calls_the_service = path.starts_with("/v1/");
    add(match (method, calls_the_service) {
        (HttpMethod::Post, _) => &failures::BAD_BODY,
        (_, true) => &failures::BAD_QUERY,
        (_, false) => &failures::BAD_HOST,
    });
    if *method == HttpMethod::Post {
        failures::OF_BODIES.iter().for_each(&mut add);
    }
    if calls_the_service {
        failures::OF_THE_SERVICE.iter().for_each(&mut add);
    }
}
