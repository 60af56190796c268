//! A lock that an operator breaks while its command runs.

use serde_json::json;

use crate::{TICKING, World};

#[test]
fn c50_a_revoked_lock_ends_everything_before_its_lease_could_have_ended() {
    let world = World::new();
    let mut started = world.start(&["--ttl", "6s"], TICKING);
    let end = world.earliest_end();
    let revoke = json!({"name": "job", "actor": "operator", "reason": "it hangs"});
    let revoked = world.client().call("/v1/locks/revoke", &revoke, 200);
    assert_eq!(revoked["revoked"], true);
    started.all_gone();
    let (code, said) = started.end();
    assert_eq!(code, Some(79), "{said}");
    assert!(said.contains("is lost"), "{said}");
    let ticks = world.readings("ticks");
    assert!(!ticks.is_empty() && ticks.iter().all(|tick| *tick <= end), "{ticks:?} {end}");
    assert_eq!(world.client().inspect("job"), None);
}

#[test]
fn a_lock_that_is_gone_when_it_is_given_back_is_79_whatever_the_command_says() {
    let world = World::new();
    let revoke = r#""$DLOCK" revoke job --reason "by itself" > told; exit 3"#;
    let output = world.run(&["--ttl", "1h"], revoke).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(79), "{said}");
    assert!(said.contains("lost"), "{said}");
    let told = std::fs::read_to_string(world.path().join("told")).unwrap();
    assert!(told.contains("revoked         yes"), "{told}");
}

#[test]
fn the_next_holder_is_left_alone() {
    let world = World::new();
    let mut started = world.start(&["--ttl", "1h"], "echo ready; read forever");
    let revoke = json!({"name": "job", "actor": "operator", "reason": "it hangs"});
    world.client().call("/v1/locks/revoke", &revoke, 200);
    let wish = json!({"name": "job", "owner": "next", "ttl_ms": 3_600_000});
    let next = world.client().call("/v1/locks/acquire", &wish, 200);
    assert_eq!(started.end().0, Some(79));
    let seen = world.client().inspect("job").unwrap();
    assert_eq!(seen["fencing_token"], next["fencing_token"], "it still holds the lock");
}
