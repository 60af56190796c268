//! List: what reaches the service, pages, and cursors that nobody was given.

use dlock_domain::{ErrorKind, LockError, LockName};
use dlock_ports::Page;
use serde_json::{Value, json};

use crate::support::{MockService, SECRET, get, info, key, router_over, unasked};

fn name(text: &str) -> LockName {
    LockName::new(text).unwrap()
}

#[tokio::test]
async fn without_parameters_it_is_the_first_hundred_of_the_default_namespace() {
    for query in ["", "?", "?prefix="] {
        let mut service = MockService::new();
        service
            .expect_list()
            .withf(|request| {
                request.namespace.as_str() == "default"
                    && request.prefix.is_empty()
                    && request.after.is_none()
                    && request.limit == 100
            })
            .times(1)
            .returning(|_| Ok(Page { locks: vec![info(key("default", "k"))], next: None }));
        let answer = get(&router_over(service), &format!("/v1/locks{query}")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.body,
            json!({"locks": [{"name": "k", "namespace": "default", "owner": "holder",
                "fencing_token": 9, "held_for_ms": 2_000, "expires_in_ms": 28_500,
                "waiter_count": 3}], "next_cursor": null})
        );
        assert!(!answer.body.to_string().contains(SECRET));
    }
}

#[tokio::test]
async fn parameters_reach_the_service_as_they_were_meant() {
    let mut service = MockService::new();
    service
        .expect_list()
        .withf(|request| {
            request.namespace.as_str() == "ns"
                && &*request.prefix == "a/%2F \u{e9}"
                && request.limit == 1_000
        })
        .times(1)
        .returning(|_| Ok(Page { locks: vec![], next: None }));
    let path = "/v1/locks?namespace=ns&prefix=a%2F%252F+%C3%A9&limit=1000";
    let answer = get(&router_over(service), path).await;
    assert_eq!(answer.body, json!({"locks": [], "next_cursor": null}));
}

#[tokio::test]
async fn c30_a_cursor_goes_on_after_exactly_that_name() {
    for last in ["a", "a/", "%2F", "a b&c=d", "\u{e9}", "e\u{301}", "\u{1f512}"] {
        let mut service = MockService::new();
        service
            .expect_list()
            .withf(|request| request.after.is_none())
            .times(1)
            .returning(move |_| Ok(Page { locks: vec![], next: Some(name(last)) }));
        service
            .expect_list()
            .withf(move |request| request.after == Some(name(last)))
            .times(1)
            .returning(|_| Ok(Page { locks: vec![], next: None }));
        let router = router_over(service);
        let first = get(&router, "/v1/locks?limit=1").await;
        let cursor = first.body["next_cursor"].as_str().unwrap();
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{cursor}");
        let second = get(&router, &format!("/v1/locks?limit=1&cursor={cursor}")).await;
        assert_eq!(second.body["next_cursor"], Value::Null);
    }
}

#[tokio::test]
async fn c31_a_cursor_that_nobody_was_given_is_refused() {
    let router = unasked();
    let too_long = "61".repeat(513);
    for bad in [
        "",
        "a",
        "6",
        "0A",
        "zz",
        "6%31%00",
        "00",
        "7f",
        "0a",
        "c285",
        "ff",
        "eda080",
        "null",
        "..%2F",
        "%2B1",
        "61+",
        "%C3%A9",
        "-1",
        "%3Cscript%3E",
        &too_long,
    ] {
        let answer = get(&router, &format!("/v1/locks?cursor={bad}")).await;
        answer.refuses(422, "invalid-argument", Some("cursor"));
        assert!(answer.body.get("applied").is_none());
    }
    get(&router, "/v1/locks?cursor=%FF").await.refuses(400, "malformed-query", None);
}

#[tokio::test]
async fn c31_bad_parameters_are_named() {
    let router = unasked();
    let long = "x".repeat(513);
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=65536", "limit"),
        ("limit=99999999999999999999", "limit"),
        ("limit=-1", "limit"),
        ("limit=%2B1", "limit"),
        ("limit=+1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=1e2", "limit"),
        ("limit=007", "limit"),
        ("limit=", "limit"),
        ("limit=null", "limit"),
        ("limit=%D9%A1", "limit"),
        ("namespace=", "namespace"),
        ("namespace=Upper", "namespace"),
        ("prefix=%00", "prefix"),
        ("prefix=a%0A", "prefix"),
        (&format!("prefix={long}"), "prefix"),
        ("name=k", "name"),
        ("limit=1&limit=2", "limit"),
        ("session_id=x", "session_id"),
    ] {
        let answer = get(&router, &format!("/v1/locks?{query}")).await;
        answer.refuses(422, "invalid-argument", Some(field));
    }
}

#[tokio::test]
async fn a_store_that_cannot_list_says_so() {
    let mut service = MockService::new();
    service.expect_list().returning(|_| Err(LockError::new(ErrorKind::Unsupported, "cannot")));
    let answer = get(&router_over(service), "/v1/locks").await;
    answer.refuses(501, "unsupported", None);
    assert!(answer.body.get("applied").is_none());
}
