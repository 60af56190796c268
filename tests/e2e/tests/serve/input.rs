//! C31, C32, C36: bad values, through a real server that goes on afterwards.

use dlock_e2e::client::{Client, is_problem};
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, naming, token};

/// A `POST` that must be refused for a field.
#[track_caller]
fn refused(client: &Client, path: &str, body: &str, field: &str) {
    let problem = client.post_bytes(path, body.as_bytes()).unwrap();
    assert_eq!(problem.status, 422, "{body}: {}", problem.body);
    assert!(is_problem(&problem.body, "invalid-argument"), "{}", problem.body);
    assert_eq!(problem.body["field"], field, "{body}: {}", problem.body);
}

#[track_caller]
fn malformed(client: &Client, path: &str, body: &[u8]) {
    let problem = client.post_bytes(path, body).unwrap().expect(400);
    assert!(is_problem(&problem, "malformed-body"), "{problem}");
}

#[test]
fn c31_names_that_cannot_be_are_refused_and_never_folded_together() {
    let world = World::new();
    let client = world.client();
    let wanting = |name: &str| json!({"name": name, "owner": "a", "ttl_ms": LONG}).to_string();
    let (long, longest) = ("x".repeat(513), "x".repeat(512));
    for name in ["\0", "a\nb", "a\r", "\t", "\u{1b}[31m", "\u{7f}", "\u{85}", "", &long] {
        refused(&client, ACQUIRE, &wanting(name), "name");
    }
    refused(&client, ACQUIRE, r#"{"owner":"a","ttl_ms":1000}"#, "name");
    acquire(&client, &longest, "a", LONG);

    for bytes in [&b"\xff"[..], b"\xfe", b"\xed\xa0\x80"] {
        let mut body = br#"{"owner":"a","ttl_ms":1000,"name":""#.to_vec();
        body.extend_from_slice(bytes);
        body.extend_from_slice(br#""}"#);
        malformed(&client, ACQUIRE, &body);
    }
    // The character that careless decoders put in their place is a name of its own.
    acquire(&client, "\u{fffd}", "a", LONG);
    for query in ["%FF", "%FE", "%ED%A0%80", "a%", "a%2", "%zz"] {
        let problem = client.get(&format!("/v1/locks/inspect?name={query}")).unwrap().expect(400);
        assert!(is_problem(&problem, "malformed-query"), "{problem}");
    }
    let control = client.get("/v1/locks/inspect?name=%00").unwrap().expect(422);
    assert_eq!(control["field"], "name");
    assert!(client.inspect("\u{fffd}").is_some());
}

#[test]
fn c32_durations_are_whole_and_within_bounds() {
    let world = World::new();
    let client = world.client();
    let ttl = |value: &str| format!(r#"{{"name":"ttl","owner":"a","ttl_ms":{value}}}"#);
    let wait = |value: &str| {
        format!(r#"{{"name":"wait","owner":"a","ttl_ms":1000,"max_wait_ms":{value}}}"#)
    };
    for value in [
        "-1",
        "0.5",
        "1e308",
        "1e3",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "\"5s\"",
        "\"5\"",
        "true",
        "[]",
    ] {
        refused(&client, ACQUIRE, &ttl(value), "ttl_ms");
        refused(&client, ACQUIRE, &wait(value), "max_wait_ms");
        let session = format!(r#"{{"owner":"a","ttl_ms":{value}}}"#);
        refused(&client, "/v1/sessions", &session, "ttl_ms");
    }
    for value in ["0", "999", "86400001", "null"] {
        refused(&client, ACQUIRE, &ttl(value), "ttl_ms");
    }
    refused(&client, ACQUIRE, r#"{"name":"ttl","owner":"a"}"#, "ttl_ms");
    refused(&client, ACQUIRE, &wait("3600001"), "max_wait_ms");
    for value in ["NaN", "Infinity", "01000", "+1000", ".5"] {
        malformed(&client, ACQUIRE, ttl(value).as_bytes());
        malformed(&client, ACQUIRE, wait(value).as_bytes());
    }
    assert_eq!((client.inspect("ttl"), client.inspect("wait")), (None, None), "none was for ever");

    // The documented default of a wait is none at all.
    let holder = acquire(&client, "held", "a", LONG);
    for value in ["null", "0"] {
        let body = format!(r#"{{"name":"held","owner":"b","ttl_ms":1000,"max_wait_ms":{value}}}"#);
        client.post_bytes(ACQUIRE, body.as_bytes()).unwrap().expect(409);
    }
    client.call(RENEW, &naming(&holder), 200);
    for longest in [1_000, 86_400_000] {
        let grant = acquire(&client, &format!("ttl/{longest}"), "a", longest);
        assert_eq!(grant["ttl_ms"], longest);
    }
}

#[test]
fn c36_a_token_is_a_json_integer_and_nothing_else() {
    let world = World::new();
    let client = world.client();
    let grant = acquire(&client, "k", "a", LONG);
    let exact = token(&grant).to_string();
    let naming_with = |value: &str| {
        let session: &Value = &grant["session_id"];
        format!(r#"{{"name":"k","session_id":{session},"fencing_token":{value}}}"#)
    };
    let (text, float, padded) = (format!("\"{exact}\""), format!("{exact}.0"), format!("0{exact}"));
    let wrong = [
        text.as_str(),
        &float,
        "-1",
        "0",
        "9007199254740992",
        "18446744073709551616",
        "1e0",
        "true",
        "null",
    ];
    for path in [RENEW, RELEASE] {
        for value in wrong {
            refused(&client, path, &naming_with(value), "fencing_token");
        }
        malformed(&client, path, naming_with(&padded).as_bytes());
        let held = format!(
            r#"{{"session_id":{},"held":[{{"name":"k","fencing_token":{text}}}]}}"#,
            grant["session_id"]
        );
        refused(&client, "/v1/sessions/keepalive", &held, "held[0].fencing_token");
    }
    let released = client.post_bytes(RELEASE, naming_with(&exact).as_bytes()).unwrap().expect(200);
    assert_eq!(released["released"], true);
}
