//! `acquire`, `renew`, `release`, `inspect`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use dlock_e2e::eventually;

use crate::{Said, everywhere, grant};

const OTHER: &str = "00000000000000000000000000000001";
const ATTEMPT: &str = "0f0e0d0c0b0a09080706050403020100";

#[test]
fn a_lock_is_taken_kept_and_given_back() {
    everywhere(|world| {
        let taken = world.json(&["acquire", "k", "--owner", "me", "--ttl", "1h"], 0);
        assert_eq!((&taken["name"], &taken["owner"]), (&"k".into(), &"me".into()));
        assert_eq!((&taken["namespace"], &taken["ttl_ms"]), (&"default".into(), &3_600_000.into()));
        let (session, token) = grant(&taken);
        let renew = ["renew", "k", "--token", &token, "--session", &session];
        assert_eq!(world.json(&renew, 0)["fencing_token"], taken["fencing_token"]);
        let seen = world.json(&["inspect", "k"], 0);
        assert_eq!((&seen["owner"], seen.get("session_id")), (&"me".into(), None));
        let release = ["release", "k", "--token", &token, "--session", &session];
        assert_eq!(world.json(&release, 0)["current"], "none");
        // Nobody holds it: inspect says so with 1, and what is gone is lost.
        world.json(&["inspect", "k"], 1);
        world.json(&renew, 79);
        assert_eq!(world.json(&release, 79)["released"], false);
        let (_, next) = world.acquire("k");
        assert!(next.parse::<u64>().unwrap() > token.parse().unwrap());
    });
}

#[test]
fn people_are_told_the_same() {
    everywhere(|world| {
        let taken = world.dlock(&["acquire", "k", "--owner", "me", "--ttl", "1h"]);
        let value = |said: &Said, name: &str| {
            let line = said.out.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
            line.unwrap_or_default().to_owned()
        };
        let (token, session) = (value(&taken, "token"), value(&taken, "session"));
        assert!(token.parse::<u64>().is_ok() && session.len() == 32, "{taken:?}");
        let held = world.dlock(&["acquire", "k"]);
        assert_eq!((held.code, held.err.as_str()), (Some(75), ""));
        assert!(held.out.starts_with("not granted\nNAME"), "{held:?}");
        assert!(held.out.lines().nth(2).unwrap().starts_with("k     me"), "{held:?}");
        let released = world.dlock(&["release", "k", "--token", &token, "--session", &session]);
        assert_eq!(released.out, "released     yes\nheld now by  nobody\n");
        let free = world.dlock(&["inspect", "k"]);
        assert_eq!((free.code, free.out.as_str()), (Some(1), "free\n"));
    });
}

#[test]
fn a_held_lock_is_75_and_a_wait_ends_when_it_is_free() {
    everywhere(|world| {
        let (session, token) = world.acquire("k");
        let refused = world.json(&["acquire", "k", "--wait", "200ms"], 75);
        assert_eq!(refused["holder"]["fencing_token"].to_string(), token);
        let mut waiter = world.command(&["acquire", "k", "--wait", "1h", "--json"]);
        let mut waiter = waiter.stdout(Stdio::piped()).spawn().unwrap();
        // Whether it waits already or only soon: it is granted either way.
        world.json(&["release", "k", "--token", &token, "--session", &session], 0);
        eventually("it is granted", || waiter.try_wait().unwrap().is_some());
        assert_eq!(waiter.wait_with_output().unwrap().status.code(), Some(0));
    });
}

#[test]
fn an_attempt_is_repeated_and_settled() {
    everywhere(|world| {
        let session = world.json(&["session", "open", "--ttl", "1h"], 0);
        let session = session["session_id"].as_str().unwrap();
        let acquire = ["acquire", "k", "--session", session, "--attempt", ATTEMPT];
        let (_, token) = grant(&world.json(&acquire, 0));
        assert_eq!(grant(&world.json(&acquire, 0)).1, token, "a repeat finds its own grant");
        let settle = ["release", "k", "--session", session, "--attempt", ATTEMPT];
        assert_eq!(world.json(&settle, 0)["released"], true);
        // Settled again, and with nothing held: no loss.
        assert_eq!(world.json(&settle, 0)["released"], false);
        world.json(&["inspect", "k"], 1);
    });
}

#[test]
fn a_token_under_another_session_is_denied_and_unknown_sessions_are_gone() {
    everywhere(|world| {
        let (session, token) = world.acquire("k");
        let (other, _) = world.acquire("other");
        for verb in ["renew", "release"] {
            let denied = world.json(&[verb, "k", "--token", &token, "--session", &other], 77);
            assert_eq!(denied["type"], "urn:dlock:problem:denied", "{verb}");
        }
        world.json(&["acquire", "free", "--session", OTHER], 79);
        world.json(&["renew", "k", "--token", &token, "--session", &session], 0);
    });
}

#[test]
fn a_session_is_read_from_standard_input() {
    everywhere(|world| {
        let (session, token) = world.acquire("k");
        let with = |command: &mut Command, text: &str| {
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            child.wait_with_output().unwrap().status.code()
        };
        for (text, code) in [
            (format!("{session}\n"), 0),
            (session.clone(), 0),
            (format!("  {session}\r\n"), 0),
            (String::new(), 64),
            (format!("{session}\n{session}\n"), 64),
            ("x".repeat(5_000), 64),
        ] {
            let renew = ["renew", "k", "--token", &token, "--session", "-"];
            // What is longer than it reads may find the pipe closed.
            let text = text.get(..4_000).unwrap_or(&text);
            assert_eq!(with(&mut world.command(&renew), text), Some(code), "{text:?}");
        }
        assert_eq!(with(&mut world.command(&["session", "keep", "-"]), &session), Some(0));
        assert_eq!(with(&mut world.command(&["session", "close", "-"]), &session), Some(0));
        assert_eq!(
            with(&mut world.command(&["acquire", "k", "--session", "-"]), &session),
            Some(79)
        );
        world.json(&["inspect", "k"], 1);
    });
}

#[test]
fn namespaces_do_not_meet() {
    everywhere(|world| {
        world.acquire("k");
        let elsewhere = world.json(&["acquire", "k", "--namespace", "team-a", "--ttl", "1h"], 0);
        assert_eq!(elsewhere["namespace"], "team-a");
        let configured = world
            .command(&["inspect", "k", "--json"])
            .env("DLOCK_LOCK_NAMESPACE", "team-a")
            .output();
        let seen: serde_json::Value = serde_json::from_slice(&configured.unwrap().stdout).unwrap();
        assert_eq!(seen["fencing_token"], elsewhere["fencing_token"]);
    });
}
