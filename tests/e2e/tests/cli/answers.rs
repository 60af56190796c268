//! `--json` is what HTTP answers: one story, told to a server over HTTP, to a server by the command
//! line, and to the embedded store by the command line, with the same answers to every call.

use dlock_e2e::client::Client;
use serde_json::Value;

use crate::World;

/// A call: as words, and as HTTP; the exit code and the status. `{…}` is filled in by what was
/// answered before.
struct Step {
    words: &'static str,
    http: &'static str,
    body: &'static str,
    code: i32,
    status: u16,
}

const fn step(
    words: &'static str,
    code: i32,
    http: &'static str,
    body: &'static str,
    status: u16,
) -> Step {
    Step { words, http, body, code, status }
}

const STORY: &[Step] = &[
    step("health", 0, "GET /readyz", "", 200),
    step("inspect k", 1, "GET /v1/locks/inspect?name=k", "", 404),
    step(
        "acquire k --owner me --ttl 1h",
        0,
        "POST /v1/locks/acquire",
        r#"{"name":"k","owner":"me","ttl_ms":3600000}"#,
        200,
    ),
    step("inspect k", 0, "GET /v1/locks/inspect?name=k", "", 200),
    step(
        "acquire k --owner you --ttl 1h",
        75,
        "POST /v1/locks/acquire",
        r#"{"name":"k","owner":"you","ttl_ms":3600000}"#,
        409,
    ),
    step(
        "renew k --token {token} --session {session}",
        0,
        "POST /v1/locks/renew",
        r#"{"name":"k","fencing_token":{token},"session_id":"{session}"}"#,
        200,
    ),
    step(
        "renew k --token {token} --session 00000000000000000000000000000001",
        77,
        "POST /v1/locks/renew",
        r#"{"name":"k","fencing_token":{token},"session_id":"00000000000000000000000000000001"}"#,
        403,
    ),
    step(
        "session open --owner me --ttl 1h",
        0,
        "POST /v1/sessions",
        r#"{"owner":"me","ttl_ms":3600000}"#,
        201,
    ),
    step(
        "acquire k2 --namespace other --session {session} --attempt 000000000000000000000000000000aa",
        0,
        "POST /v1/locks/acquire",
        r#"{"name":"k2","namespace":"other","session_id":"{session}",
            "attempt_id":"000000000000000000000000000000aa"}"#,
        200,
    ),
    step(
        "session keep {session}",
        0,
        "POST /v1/sessions/keepalive",
        r#"{"session_id":"{session}"}"#,
        200,
    ),
    step("list", 0, "GET /v1/locks", "", 200),
    step("list --namespace other", 0, "GET /v1/locks?namespace=other", "", 200),
    step(
        "acquire k3 --session {session}",
        0,
        "POST /v1/locks/acquire",
        r#"{"name":"k3","session_id":"{session}"}"#,
        200,
    ),
    step("list --limit 1", 0, "GET /v1/locks?limit=1", "", 200),
    step("list --limit 1 --cursor {cursor}", 0, "GET /v1/locks?limit=1&cursor={cursor}", "", 200),
    step(
        "revoke k3 --actor me --reason r --expected-token 4611686018427387",
        75,
        "POST /v1/locks/revoke",
        r#"{"name":"k3","actor":"me","reason":"r","expected_token":4611686018427387}"#,
        409,
    ),
    step(
        "revoke k3 --actor me --reason r",
        0,
        "POST /v1/locks/revoke",
        r#"{"name":"k3","actor":"me","reason":"r"}"#,
        200,
    ),
    step(
        "revoke k3 --actor me --reason r",
        0,
        "POST /v1/locks/revoke",
        r#"{"name":"k3","actor":"me","reason":"r"}"#,
        200,
    ),
    step(
        "revoke k3 --actor me --reason r --expected-token 1",
        75,
        "POST /v1/locks/revoke",
        r#"{"name":"k3","actor":"me","reason":"r","expected_token":1}"#,
        409,
    ),
    step(
        "release k2 --namespace other --session {session} --attempt 000000000000000000000000000000aa",
        0,
        "POST /v1/locks/release",
        r#"{"name":"k2","namespace":"other","session_id":"{session}",
            "attempt_id":"000000000000000000000000000000aa"}"#,
        200,
    ),
    step(
        "release k3 --session {session} --token {token}",
        79,
        "POST /v1/locks/release",
        r#"{"name":"k3","session_id":"{session}","fencing_token":{token}}"#,
        200,
    ),
    step(
        "renew k3 --session {session} --token {token}",
        79,
        "POST /v1/locks/renew",
        r#"{"name":"k3","session_id":"{session}","fencing_token":{token}}"#,
        410,
    ),
    step(
        "session close {session}",
        0,
        "POST /v1/sessions/close",
        r#"{"session_id":"{session}"}"#,
        200,
    ),
    step(
        "session close {session}",
        79,
        "POST /v1/sessions/close",
        r#"{"session_id":"{session}"}"#,
        200,
    ),
    step(
        "session keep {session}",
        79,
        "POST /v1/sessions/keepalive",
        r#"{"session_id":"{session}"}"#,
        410,
    ),
    step(
        "acquire k4 --session {session}",
        79,
        "POST /v1/locks/acquire",
        r#"{"name":"k4","session_id":"{session}"}"#,
        410,
    ),
    step("floor raise 1000", 0, "POST /v1/floor", r#"{"at_least":1000}"#, 200),
    step(
        "floor raise 9007199254740991",
        64,
        "POST /v1/floor",
        r#"{"at_least":9007199254740991}"#,
        422,
    ),
];

/// What later calls need of earlier answers.
#[derive(Default)]
struct Known([(&'static str, String); 3]);

impl Known {
    fn fill(&self, text: &str) -> String {
        let filled = |text: String, (name, value): &(&str, String)| {
            if name.is_empty() { text } else { text.replace(&format!("{{{name}}}"), value) }
        };
        self.0.iter().fold(text.to_owned(), filled)
    }

    fn learn(&mut self, body: &Value) {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let places =
            [("session", "session_id"), ("token", "fencing_token"), ("cursor", "next_cursor")];
        for (place, (name, field)) in self.0.iter_mut().zip(places) {
            if let Some(value) = body.get(field) {
                *place = (name, text(value));
            }
        }
    }
}

/// Times and secrets, which no two tellings share: their kind is left.
fn timeless(body: &mut Value) {
    match body {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "valid_ms" | "held_for_ms" | "expires_in_ms" => {
                        assert!(
                            value.as_u64().is_some_and(|ms| ms <= 3_600_000),
                            "{name}: {value}"
                        );
                        *value = Value::from("milliseconds");
                    }
                    "session_id" => {
                        assert_eq!(value.as_str().unwrap().len(), 32);
                        *value = Value::from("session");
                    }
                    _ => timeless(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(timeless),
        _ => {}
    }
}

fn told(world: &World) -> Vec<Value> {
    let mut known = Known::default();
    let tell = |step: &Step| {
        let words = known.fill(step.words);
        let mut body = world.json(&words.split(' ').collect::<Vec<_>>(), step.code);
        known.learn(&body);
        timeless(&mut body);
        body
    };
    STORY.iter().map(tell).collect()
}

fn answered(client: &Client) -> Vec<Value> {
    let mut known = Known::default();
    let ask = |step: &Step| {
        let (method, path) = step.http.split_once(' ').unwrap();
        let (path, body) = (known.fill(path), known.fill(step.body));
        let reply = match method {
            "GET" => client.get(&path),
            _ => client.post_bytes(&path, body.as_bytes()),
        };
        let mut body = reply.unwrap().expect(step.status);
        known.learn(&body);
        timeless(&mut body);
        body
    };
    STORY.iter().map(ask).collect()
}

#[test]
fn json_is_what_http_answers_to_every_command() {
    let expected = answered(&World::server().server.as_ref().unwrap().client());
    for (place, world) in [("server", World::server()), ("embedded", World::embedded())] {
        for ((step, expected), told) in STORY.iter().zip(&expected).zip(told(&world)) {
            assert_eq!(&told, expected, "{place}: {}", step.words);
        }
    }
}

#[test]
fn the_fields_come_in_the_same_order_too() {
    let world = World::server();
    world.acquire("k");
    let order = |text: &str| {
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.filter(|word| text.contains(&format!("\"{word}\":"))).map(str::to_owned).collect()
    };
    let mine: Vec<String> = order(&world.dlock(&["inspect", "k", "--json"]).out);
    let curl = std::process::Command::new("curl")
        .args(["--silent", "--noproxy", "*"])
        .arg(format!("http://{}/v1/locks/inspect?name=k", world.server.as_ref().unwrap().address()))
        .output()
        .unwrap();
    assert_eq!(mine, order(&String::from_utf8(curl.stdout).unwrap()));
    assert_eq!(mine.first().map(String::as_str), Some("name"));
}
