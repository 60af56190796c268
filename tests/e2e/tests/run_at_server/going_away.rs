//! A server that goes away, for a while or for good.

use std::process::Stdio;

use dlock_e2e::eventually;
use dlock_faults::Proxy;
use serde_json::json;

use crate::{TICKING, World, uptime};

#[test]
fn a_server_that_is_back_before_the_lease_ends_costs_nothing() {
    let mut world = World::new();
    let mut started = world.start(&["--ttl", "12s"], "echo ready; cat; exit 5");
    let token = world.client().inspect("job").unwrap()["fencing_token"].clone();
    world.server.kill();
    let end = world.earliest_end();
    world.server.restart();
    // Kept by the new process: the lease now ends later than any the old one gave.
    eventually("the lease is kept", || {
        let info = world.client().inspect("job").unwrap();
        assert_eq!(info["fencing_token"], token);
        uptime() + info["expires_in_ms"].as_u64().unwrap() / 10 > end + 100
    });
    let (code, said) = started.end();
    assert_eq!((code, said.as_str()), (Some(5), ""));
    assert_eq!(world.client().inspect("job"), None);
}

#[test]
fn c50_a_server_that_is_gone_for_good_is_loss_with_everything_dead_before_the_lease_ends() {
    let mut world = World::new();
    let mut started = world.start(&["--ttl", "3s"], TICKING);
    world.server.kill();
    let end = world.earliest_end();
    started.all_gone();
    let (code, said) = started.end();
    assert_eq!(code, Some(79), "{said}");
    assert!(said.contains("is lost"), "{said}");
    let ticks = world.readings("ticks");
    assert!(!ticks.is_empty() && ticks.iter().all(|tick| *tick <= end), "{ticks:?} {end}");
}

#[test]
fn a_polite_command_is_asked_first_when_the_server_is_gone() {
    let mut world = World::new();
    let script =
        "trap 'echo cleaned > cleaned; kill $!; exit 0' TERM; sleep 1000 & echo ready; wait";
    let mut started = world.start(&["--ttl", "4s"], script);
    world.server.kill();
    started.all_gone();
    assert_eq!(started.end().0, Some(79));
    assert!(world.path().join("cleaned").exists());
}

#[test]
fn a_command_that_ends_while_the_server_is_away_keeps_its_code() {
    let mut world = World::new();
    let mut started = world.start(&["--ttl", "4s"], "echo ready; cat; exit 5");
    world.server.kill();
    let (code, said) = started.end();
    assert_eq!(code, Some(5), "nobody said that it was lost: {said}");
    assert!(said.contains("could not be given back"), "{said}");
}

#[test]
fn a_wait_outlives_a_restart_of_its_server() {
    let mut world = World::new();
    let client = world.client();
    let wish = json!({"name": "job", "owner": "holder", "ttl_ms": 3_600_000});
    let held = client.call("/v1/locks/acquire", &wish, 200);
    let mut waiter = world.run(&["--wait", "10m"], "exit 6");
    let waiter = waiter.stderr(Stdio::piped()).spawn().unwrap();
    eventually("it waits", || client.waiters("job") == 1);
    world.server.kill();
    world.server.restart();
    eventually("it waits again", || client.waiters("job") == 1);
    let given_back = json!({
        "name": "job",
        "session_id": held["session_id"],
        "fencing_token": held["fencing_token"],
    });
    assert_eq!(client.call("/v1/locks/release", &given_back, 200)["released"], true);
    let output = waiter.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{output:?}");
    assert_eq!(client.inspect("job"), None);
}

#[test]
fn a_server_that_is_asked_to_stop_is_waited_for_like_one_that_was_killed() {
    let mut world = World::new();
    let client = world.client();
    let wish = json!({"name": "job", "owner": "holder", "ttl_ms": 3_600_000});
    client.call("/v1/locks/acquire", &wish, 200);
    let mut waiter = world.run(&["--wait", "10m"], "exit 6").spawn().unwrap();
    eventually("it waits", || client.waiters("job") == 1);
    assert!(world.server.terminate().success());
    world.server.restart();
    eventually("it waits again", || client.waiters("job") == 1);
    let revoke = json!({"name": "job", "actor": "a", "reason": "r"});
    client.call("/v1/locks/revoke", &revoke, 200);
    assert_eq!(waiter.wait().unwrap().code(), Some(6));
}

/// It takes connections and answers nothing any more, as when its store does not answer or it was
/// stopped. Another way leads to the same store, and there is time to take it.
#[test]
fn a_server_that_hangs_is_left_for_the_next_before_the_lease_ends() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let proxy = Proxy::start(world.server.address()).unwrap();
    let servers = format!("http://{},{}", proxy.addr(), world.url());
    let mut started =
        world.start(&["--ttl", "6s", "--server", &servers], "echo ready; cat; exit 5");
    let token = world.client().inspect("job").unwrap()["fencing_token"].clone();
    proxy.cut();
    let end = world.earliest_end();
    eventually("the lease is kept by the other way", || {
        let info = world.client().inspect("job").unwrap();
        assert_eq!(info["fencing_token"], token);
        uptime() + info["expires_in_ms"].as_u64().unwrap() / 10 > end + 100
    });
    let (code, said) = started.end();
    assert_eq!((code, said.as_str()), (Some(5), ""));
}
