//! C33: text that would like to be more than text.

use dlock_e2e::{client::is_problem, raw::Raw};
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, naming, wanting};

/// Lines, cursor movements, and endings that a reader might take for something else.
const FORGED: [&str; 8] = [
    "a\r\nlevel=ERROR forged",
    "a\nforged",
    "a\rforged",
    "\u{1b}[2J\u{1b}[1;31mforged",
    "\u{9b}31mforged",
    "forged\u{7f}",
    "forged\0",
    "forged\u{2028}",
];

#[test]
fn c33_nothing_that_somebody_names_forges_a_line() {
    for format in ["json", "text"] {
        let world = World::with(&[], &[("DLOCK_LOG_LEVEL", "debug"), ("DLOCK_LOG_FORMAT", format)]);
        refuses_what_is_no_label(&world);
        shows_labels_as_text(&world);
        // Whatever was named above, each line of the log is one of the server's.
        let log = world.server.log();
        assert!(!log.contains('\u{1b}'), "{log}");
        let whole = |line: &str| match format {
            "json" => {
                serde_json::from_str::<Value>(line).is_ok_and(|line| line["level"].is_string())
            }
            _ => line.starts_with("20") && line.contains("Z "),
        };
        assert_eq!(log.lines().find(|line| !whole(line)), None);
        assert!(log.contains("forged: x"), "the printable owner is in it: {log}");
        assert_eq!(log.matches("forged").count(), log.matches("forged: x").count(), "{log}");
    }
}

fn refuses_what_is_no_label(world: &World) {
    let client = world.client();
    let long = "x".repeat(10_240);
    let revoke = |actor: &str, reason: &str| json!({"name": "k", "actor": actor, "reason": reason});
    for text in FORGED.into_iter().chain([long.as_str()]) {
        for (path, body, field) in [
            (ACQUIRE, wanting("k", text, LONG, 0), "owner"),
            ("/v1/sessions", json!({"owner": text, "ttl_ms": LONG}), "owner"),
            ("/v1/locks/revoke", revoke(text, "why"), "actor"),
            ("/v1/locks/revoke", revoke("ops", text), "reason"),
        ] {
            let problem = client.call(path, &body, 422);
            assert!(is_problem(&problem, "invalid-argument"), "{problem}");
            assert_eq!(problem["field"], field, "{text:?}: {problem}");
            // Not even in the refusal.
            let shown = problem.to_string();
            assert!(!shown.contains("forged") && shown.len() < 1_024, "{shown}");
        }
    }
    assert_eq!(client.inspect("k"), None);

    let mut coloured = Raw::connect(world.address());
    coloured
        .write("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-request-id: a\u{1b}[31mforged\r\n\r\n");
    let (head, _) = coloured.answer_with_head().unwrap();
    assert!(!head.join("\n").contains("forged"), "{head:?}");
}

fn shows_labels_as_text(world: &World) {
    let client = world.client();
    let owner = r#""><script>alert(1)</script><!-- {"level":"ERROR"} %0d%0aforged: x"#;
    let name = "<img src=x onerror=alert(1)>";
    let grant = acquire(&client, name, owner, LONG);
    assert_eq!(client.inspect(name).unwrap()["owner"], owner);
    let page = client.get("/").unwrap().expect(200);
    let page = page.as_str().unwrap();
    assert!(page.contains("&lt;script&gt;alert") && page.contains("&lt;img"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    client.call(RELEASE, &naming(&grant), 200);
}
