//! Answers that never arrive: unknown is neither loss nor success (INV-07).

use std::sync::atomic::Ordering;

use crate::{World, swallow};

const RELEASE: &str = "/v1/locks/release";

#[test]
fn a_release_whose_answer_was_swallowed_is_no_loss() {
    let world = World::new();
    let proxy = swallow::the_first_answer_of(RELEASE, world.server.address());
    let mut run = world.run(&["--ttl", "1h"], "exit 5");
    let output = run.env("DLOCK_SERVER", format!("http://{}", proxy.address)).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(proxy.swallowed.load(Ordering::SeqCst) >= 2, "it was asked again");
    assert_eq!(world.client().inspect("job"), None);
}

#[test]
fn the_release_command_says_unknown_and_not_lost() {
    let world = World::new();
    let output = world.dlock(&["acquire", "job", "--ttl", "1h", "--json"]).output().unwrap();
    let grant: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (session, token) =
        (grant["session_id"].as_str().unwrap(), grant["fencing_token"].to_string());
    let proxy = swallow::the_first_answer_of(RELEASE, world.server.address());
    let words = ["release", "job", "--session", session, "--token", &token, "--json"];
    let through = format!("http://{}", proxy.address);
    let output = world.dlock(&words).env("DLOCK_SERVER", through).output().unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert_eq!((&said["applied"], &said["retryable"]), (&"unknown".into(), &true.into()));
    // Asked anew, without an unknown try before: what is not there is lost.
    assert_eq!(world.dlock(&words).status().unwrap().code(), Some(79));
}

#[test]
fn an_acquire_whose_answer_was_swallowed_finds_its_own_grant() {
    let world = World::new();
    let proxy = swallow::the_first_answer_of("/v1/locks/acquire", world.server.address());
    let mut run = world.run(&["--no-wait"], "exit 5");
    let output = run.env("DLOCK_SERVER", format!("http://{}", proxy.address)).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "not held by itself: {output:?}");
    assert_eq!(world.client().inspect("job"), None);
}
