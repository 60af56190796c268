//! The API's description: the committed one is the code's, and the code answers as it says.

use std::{collections::BTreeSet, path::Path};

use axum::http::Method;
use dlock_domain::{ErrorKind, Invariant, LockError};
use serde_json::{Value, json};

use crate::support::{MockService, SECRET, browse, get, post, request, router_over, send, unasked};

/// The table of calls (C3), in the order of the document.
const CALLS: [(&str, &str); 17] = [
    ("/", "get"),
    ("/livez", "get"),
    ("/metrics", "get"),
    ("/openapi.json", "get"),
    ("/readyz", "get"),
    ("/v1/floor", "post"),
    ("/v1/locks", "get"),
    ("/v1/locks/acquire", "post"),
    ("/v1/locks/inspect", "get"),
    ("/v1/locks/release", "post"),
    ("/v1/locks/renew", "post"),
    ("/v1/locks/revoke", "post"),
    ("/v1/sessions", "post"),
    ("/v1/sessions/close", "post"),
    ("/v1/sessions/keepalive", "post"),
    ("/v1/sessions/look", "post"),
    // Last, so that the comparison notices a missing end.
    ("", ""),
];

fn document() -> Value {
    serde_json::from_str(dlock_http::openapi()).unwrap()
}

/// Follows references until there is none.
fn resolved<'a>(document: &'a Value, mut value: &'a Value) -> &'a Value {
    while let Some(reference) = value.get("$ref") {
        let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
        value = document.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not there"));
    }
    value
}

#[test]
fn the_committed_document_is_the_codes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../openapi.json");
    if std::env::var_os("TEST_DLOCK_BLESS").is_some() {
        std::fs::write(&file, dlock_http::openapi()).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let same = serde_json::from_str::<Value>(&committed).is_ok_and(|value| value == document());
    assert!(
        same,
        "openapi.json is not what the code says; rewrite it with\n\
         TEST_DLOCK_BLESS=1 cargo test -p dlock-http --test http openapi"
    );
}

#[tokio::test]
async fn it_is_served_as_it_is() {
    let answer = browse(&unasked(), "/openapi.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.text, dlock_http::openapi());
}

#[test]
fn its_paths_are_the_table_of_calls() {
    let document = document();
    let mut described: Vec<(&str, &str)> = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            described.push((path, method));
        }
    }
    described.sort_unstable();
    described.push(("", ""));
    assert_eq!(described, CALLS);
}

fn every_value<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| every_value(item, visit)),
        Value::Object(members) => members.values().for_each(|member| every_value(member, visit)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_everything_is_referred_to() {
    let document = document();
    let mut used = BTreeSet::new();
    every_value(&document, &mut |value| {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            resolved(&document, value);
            used.insert(reference);
        }
    });
    for (section, entries) in document["components"].as_object().unwrap() {
        for name in entries.as_object().unwrap().keys() {
            let pointer = format!("#/components/{section}/{name}");
            assert!(used.contains(pointer.as_str()), "nothing refers to {pointer}");
        }
    }
}

#[test]
fn c34_bodies_are_closed_and_integers_have_ranges() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(body) = item.pointer("/post/requestBody/content/application~1json/schema") else {
            continue;
        };
        let schema = resolved(&document, body);
        let forms = schema.get("oneOf").and_then(Value::as_array);
        for form in forms.map_or(vec![schema], |forms| forms.iter().collect()) {
            assert_eq!(form["additionalProperties"], false, "{path}");
            assert!(!form["required"].as_array().unwrap().is_empty(), "{path}");
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        if schema["type"] == "integer" {
            assert!(schema["minimum"].is_u64() && schema["maximum"].is_u64(), "{name}");
        }
    }
}

/// A request that is right, for every call of the service.
fn good(path: &str) -> Value {
    let grant = json!({"name": "k", "session_id": SECRET, "fencing_token": 7});
    match path {
        "/v1/floor" => json!({"at_least": 0}),
        "/v1/locks/acquire" => json!({"name": "k", "session_id": SECRET}),
        "/v1/locks/release" | "/v1/locks/renew" => grant,
        "/v1/locks/revoke" => json!({"name": "k", "actor": "ops", "reason": "r"}),
        "/v1/sessions" => json!({"owner": "me", "ttl_ms": 1_000}),
        "/v1/sessions/close" | "/v1/sessions/keepalive" | "/v1/sessions/look" => {
            json!({"session_id": SECRET})
        }
        other => panic!("no request for {other}"),
    }
}

/// A service that fails in one way.
fn failing(kind: ErrorKind) -> MockService {
    let error = move || LockError::new(kind, "x");
    let mut service = MockService::new();
    service.expect_open_session().returning(move |_, _| Err(error()));
    service.expect_keep_session().returning(move |_, _| Err(error()));
    service.expect_look_session().returning(move |_| Err(error()));
    service.expect_close_session().returning(move |_| Err(error()));
    service.expect_acquire().returning(move |_| Err(error()));
    service.expect_renew().returning(move |_, _, _| Err(error()));
    service.expect_release().returning(move |_, _, _| Err(error()));
    service.expect_inspect().returning(move |_| Err(error()));
    service.expect_list().returning(move |_| Err(error()));
    service.expect_revoke().returning(move |_, _| Err(error()));
    service.expect_raise_floor().returning(move |_, _| Err(error()));
    service
}

/// Whether the document has this failure of this call.
fn has(document: &Value, path: &str, method: &str, status: u16, problem: &str) -> bool {
    let responses = &document["paths"][path][method]["responses"];
    let Some(response) = responses.get(status.to_string()) else { return false };
    let schema = &resolved(document, response)["content"]["application/problem+json"]["schema"];
    let types = schema.pointer("/allOf/1/properties/type/enum").and_then(Value::as_array);
    types.is_some_and(|types| types.contains(&problem.into()))
}

#[tokio::test]
async fn every_failure_of_the_service_is_in_it() {
    let document = document();
    for kind in [
        ErrorKind::Contention,
        ErrorKind::NotLeader,
        ErrorKind::Draining,
        ErrorKind::InvalidArgument { field: "x" },
        ErrorKind::Limit { limit: "x" },
        ErrorKind::Denied,
        ErrorKind::Unsupported,
        ErrorKind::InvariantViolated(Invariant::TokensRise),
        ErrorKind::LockLost,
        ErrorKind::SessionExpired,
    ] {
        let router = router_over(failing(kind));
        for (path, method) in CALLS.into_iter().filter(|(path, _)| path.starts_with("/v1/")) {
            let gone = matches!(kind, ErrorKind::LockLost | ErrorKind::SessionExpired);
            if gone && document["paths"][path][method]["responses"].get("410").is_none() {
                // Where nothing is held there is nothing to lose.
                let these = [
                    "/v1/floor",
                    "/v1/locks",
                    "/v1/locks/inspect",
                    "/v1/locks/revoke",
                    "/v1/sessions",
                    "/v1/sessions/close",
                ];
                assert!(these.contains(&path), "{path}");
                continue;
            }
            let answer = match (method, path) {
                ("get", "/v1/locks/inspect") => get(&router, "/v1/locks/inspect?name=k").await,
                ("get", _) => get(&router, path).await,
                _ => post(&router, path, good(path).to_string()).await,
            };
            let problem = answer.body["type"].as_str().unwrap();
            let status = answer.status.as_u16();
            assert!(
                has(&document, path, method, status, problem),
                "{method} {path} answers {status} {problem}"
            );
        }
    }
}

#[tokio::test]
async fn every_refusal_before_the_service_is_in_it() {
    let document = document();
    let router = unasked();
    for (path, method) in CALLS.into_iter().filter(|(path, _)| !path.is_empty()) {
        let with = |change: fn(&mut axum::http::HeaderMap), verb: Method, body: String| {
            let mut request = request(verb, path, body);
            change(request.headers_mut());
            send(&router, request)
        };
        let verb = if method == "get" { Method::GET } else { Method::POST };
        let keep: fn(&mut axum::http::HeaderMap) = |_| {};
        let mut answers = vec![
            with(|headers| drop(headers.remove("host")), verb.clone(), String::new()).await,
            with(
                |headers| drop(headers.insert("host", "evil.example".parse().unwrap())),
                verb,
                String::new(),
            )
            .await,
            with(keep, Method::PUT, String::new()).await,
        ];
        if method == "post" {
            answers.push(post(&router, path, "nonsense").await);
            answers.push(post(&router, path, r#"{"bogus":1}"#).await);
            answers.push(post(&router, path, " ".repeat(65 * 1_024)).await);
            let untyped =
                |headers: &mut axum::http::HeaderMap| drop(headers.remove("content-type"));
            answers.push(with(untyped, Method::POST, "{}".into()).await);
        } else if path.starts_with("/v1/") {
            answers.push(get(&router, &format!("{path}?name=%FF")).await);
            answers.push(get(&router, &format!("{path}?bogus=1")).await);
        }
        for answer in answers {
            let problem = answer.body["type"].as_str().unwrap();
            let status = answer.status.as_u16();
            assert!(
                has(&document, path, method, status, problem),
                "{method} {path} answers {status} {problem}"
            );
        }
    }
}
