//! Exit codes of failures that a healthy store does not have.

use crate::{World, fake::answering, said};

/// Every command that asks the store for something.
const CALLS: [&[&str]; 11] = [
    &["acquire", "k"],
    &["renew", "k", "--token", "1", "--session", "00000000000000000000000000000001"],
    &["release", "k", "--token", "1", "--session", "00000000000000000000000000000001"],
    &["inspect", "k"],
    &["list"],
    &["revoke", "k", "--reason", "r"],
    &["session", "open"],
    &["session", "keep", "00000000000000000000000000000001"],
    &["session", "close", "00000000000000000000000000000001"],
    &["floor", "raise", "1"],
    &["health"],
];

#[test]
fn what_a_server_refuses_decides_the_code_of_every_command() {
    let world = World::embedded();
    let problem = |kind: &str, status: u16, more: &str| {
        let body = format!(
            r#"{{"type":"urn:dlock:problem:{kind}","title":"t","status":{status},"detail":"d",
                "retryable":false,"applied":"no"{more}}}"#
        );
        answering(status, &body)
    };
    for (address, code, kind) in [
        (problem("denied", 403, ""), 77, "denied"),
        (problem("invariant-violated", 500, r#","invariant":"INV-04""#), 70, "invariant-violated"),
        (problem("limit", 429, r#","limit":"lock.max_locks""#), 69, "limit"),
        (problem("unsupported", 501, ""), 69, "unsupported"),
    ] {
        let server = format!("http://{address}");
        for call in CALLS {
            let words = [call, &["--server", &server, "--json"]].concat();
            let said = world.dlock(&words);
            assert_eq!(said.code, Some(code), "{words:?}: {said:?}");
            let body: serde_json::Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!(body["type"], format!("urn:dlock:problem:{kind}"), "{words:?}");
            assert!(body["title"].is_string() && body["status"].is_u64(), "{body}");
            // As HTTP: `applied` is for what could have been applied.
            let reads = ["inspect", "list", "health"].contains(&call[0]);
            assert_eq!(body.get("applied").is_none(), reads, "{words:?}: {body}");
        }
        let run = ["run", "k", "--server", &server, "--", "touch", "never"];
        assert_eq!(world.dlock(&run).code, Some(code), "{kind}");
    }
    assert!(!world.place.path().join("never").exists());
}

#[test]
fn nobody_there_is_69_everywhere() {
    let mut world = World::server();
    world.server.as_mut().unwrap().kill();
    // Each waits out its own tries, so they may as well do it at once.
    std::thread::scope(|scope| {
        for call in CALLS {
            let world = &world;
            scope.spawn(move || {
                let said = world.dlock(&[call, &["--json"]].concat());
                assert_eq!(said.code, Some(69), "{call:?}: {said:?}");
                let body: serde_json::Value = serde_json::from_str(&said.out).unwrap();
                assert_eq!(body["type"], "urn:dlock:problem:contention", "{call:?}");
                assert_eq!(body["retryable"], true, "{call:?}");
            });
        }
    });
}

#[test]
fn a_store_that_cannot_be_opened_is_69_everywhere() {
    let world = World::embedded();
    std::fs::write(world.data(), "not a folder").unwrap();
    for call in CALLS {
        let said = world.dlock(call);
        assert_eq!((said.code, said.out.as_str()), (Some(69), ""), "{call:?}: {said:?}");
        assert!(said.err.starts_with("dlock: "), "{call:?}: {said:?}");
    }
    assert_eq!(world.dlock(&["run", "k", "--", "true"]).code, Some(69));
}

#[test]
fn bad_usage_is_64_on_every_command() {
    let world = World::embedded();
    for call in CALLS.iter().copied().chain([
        &["config", "show"][..],
        &["config", "check"],
        &["completions", "bash"],
        &["man"],
        &["postgres", "schema"],
        &["serve"],
    ]) {
        let said = world.dlock(&[call, &["--nonsense"]].concat());
        assert_eq!((said.code, said.out.as_str()), (Some(64), ""), "{call:?}: {said:?}");
        assert!(said.err.contains("--nonsense"), "{said:?}");
    }
    for words in [
        &[][..],
        &["nonsense"],
        &["session"],
        &["floor"],
        &["config"],
        &["postgres"],
        &["acquire"],
        &["acquire", ""],
        &["acquire", "k", "--ttl", "5"],
        &["acquire", "k", "--wait", "2h"],
        &["acquire", "k", "--session", "x"],
        &["acquire", "k", "--ttl", "5s", "--session", "00000000000000000000000000000001"],
        &["acquire", "k", "--attempt", "x"],
        &["acquire", "k", "--owner", "a\u{202e}b"],
        &["renew", "k", "--token", "0", "--session", "00000000000000000000000000000001"],
        &["renew", "k", "--token", "1"],
        &["release", "k", "--session", "00000000000000000000000000000001"],
        &["list", "k"],
        &["completions", "klingon"],
        &["run", "k", "--json", "--", "true"],
        &["run", "k"],
        &["inspect", "k", "--server", "ftp://x"],
        &["inspect", "k", "--namespace", "A"],
    ] {
        let said = world.dlock(words);
        assert_eq!((said.code, said.out.as_str()), (Some(64), ""), "{words:?}: {said:?}");
        assert!(!said.err.is_empty(), "{words:?}");
    }
    assert!(!world.data().exists(), "no store is made for a mistake");
}

#[test]
fn help_and_version_are_0() {
    let world = World::embedded();
    let version = world.dlock(&["--version"]);
    assert_eq!((version.code, version.err.as_str()), (Some(0), ""));
    assert!(version.out.starts_with("dlock ") && version.out.lines().count() == 1, "{version:?}");
    for words in [&["--help"][..], &["-h"], &["help"], &["run", "--help"], &["help", "session"]] {
        let help = world.dlock(words);
        assert_eq!((help.code, help.err.as_str()), (Some(0), ""), "{words:?}");
        assert!(help.out.contains("Usage: dlock"), "{help:?}");
        assert!(!help.out.contains("supervise"), "{help:?}");
    }
}

#[test]
fn c33_nothing_hostile_reaches_standard_error() {
    let world = World::embedded();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\r\u{202e}";
    for words in [
        &["inspect", hostile][..],
        &[hostile],
        &["acquire", "k", "--owner", hostile],
        &["list", "--prefix", hostile],
        &["inspect", "k", "--config", hostile],
        &["inspect", "k", "--server", hostile],
        &["inspect", "k", "--namespace", hostile],
        &["completions", hostile],
        &["man", &format!("{hostile}/absent")],
    ] {
        let said = world.dlock(words);
        assert!(matches!(said.code, Some(64 | 126)), "{words:?}: {said:?}");
        let clean = said.err.chars().all(|c| c == '\n' || dlock::is_printable(c));
        assert!(clean, "{words:?}: {:?}", said.err);
    }
    let detail = r#"{"type":"urn:dlock:problem:denied","title":"t","status":403,"detail":
        "\u001b[31mred\u009b\r\u202e","retryable":false}"#;
    let server = format!("http://{}", answering(403, detail));
    let said = said(&mut world.command(&["list", "--server", &server]));
    assert_eq!(said.code, Some(77), "{said:?}");
    assert!(said.err.chars().all(|c| c == '\n' || dlock::is_printable(c)), "{said:?}");
}
