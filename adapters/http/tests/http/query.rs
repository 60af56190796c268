//! Query strings: decoded once, strictly (C30, C31, trap 43).

use std::fmt::Write;

use crate::support::{MockService, get, key, router_over, unasked};

const NAMES: [&str; 19] = [
    "a",
    "a/",
    "a/b",
    "/a",
    "//",
    ".",
    "..",
    "%2F",
    "%25",
    "a+b",
    "a b",
    "?x=1",
    "#",
    "a&b=c",
    "\u{1f512}",
    "\u{e9}",
    "e\u{301}",
    "K",
    "k",
];

/// Every byte escaped, as the strictest client would.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "%{byte:02X}").unwrap();
        text
    })
}

#[tokio::test]
async fn c30_every_name_arrives_as_it_was_meant() {
    for name in NAMES {
        let mut service = MockService::new();
        service
            .expect_inspect()
            .withf(move |lock| *lock == key("default", name))
            .times(1)
            .returning(|_| Ok(None));
        let path = format!("/v1/locks/inspect?name={}", escaped(name));
        assert_eq!(get(&router_over(service), &path).await.status, 404, "{name}");
    }
}

#[tokio::test]
async fn a_plus_is_a_blank() {
    let mut service = MockService::new();
    service
        .expect_inspect()
        .withf(|lock| *lock == key("default", "a b"))
        .times(1)
        .returning(|_| Ok(None));
    assert_eq!(get(&router_over(service), "/v1/locks/inspect?name=a+b").await.status, 404);
}

#[tokio::test]
async fn c31_what_is_not_text_is_400_and_never_folded() {
    let router = unasked();
    for bad in ["%FF", "%FE", "%ED%A0%80", "a%C3", "%", "%4", "%G0"] {
        let answer = get(&router, &format!("/v1/locks/inspect?name={bad}")).await;
        answer.refuses(400, "malformed-query", None);
        assert!(answer.body.get("applied").is_none());
    }
}

#[tokio::test]
async fn c31_bad_names_and_parameters_are_named() {
    let router = unasked();
    let long = "x".repeat(513);
    for (query, field) in [
        ("?name=%00", "name"),
        ("?name=a%0Ab", "name"),
        ("?name=%7F", "name"),
        ("?name=", "name"),
        ("?name", "name"),
        (&format!("?name={long}"), "name"),
        ("", "name"),
        ("?", "name"),
        ("?namespace=default", "name"),
        ("?name=k&namespace=", "namespace"),
        ("?name=k&namespace=Upper", "namespace"),
        ("?name=k&name=k", "name"),
        ("?name=k&%6Eame=k", "name"),
        ("?name=k&bogus=1", "bogus"),
        ("?name=k&Name=k", "Name"),
        ("?name=k&session_id", "session_id"),
        ("?name=k&=x", ""),
    ] {
        let answer = get(&router, &format!("/v1/locks/inspect{query}")).await;
        answer.refuses(422, "invalid-argument", Some(field));
    }
}
