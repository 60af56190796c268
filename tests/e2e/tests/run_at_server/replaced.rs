//! The program's file is replaced while it runs, as an upgrade does.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use dlock_e2e::{dlock, eventually};
use serde_json::json;

use crate::World;

fn beside(world: &World) -> PathBuf {
    let path = world.path().join("dlock");
    std::fs::copy(dlock(), &path).unwrap();
    path
}

/// Waits with that program, does something to its file, and lets it go on.
fn survives(what: &str, change: impl Fn(&Path)) {
    let world = World::new();
    let client = world.client();
    let wish = json!({"name": "job", "owner": "holder", "ttl_ms": 3_600_000});
    client.call("/v1/locks/acquire", &wish, 200);
    let program = beside(&world);
    let mut run = world.program(&program);
    run.args(["run", "job", "--", "sh", "-c", "echo $DLOCK_NAME; exit 7"]);
    let waiter = run.stdout(std::process::Stdio::piped()).spawn().unwrap();
    eventually("it waits", || client.waiters("job") == 1);
    change(&program);
    let revoke = json!({"name": "job", "actor": "a", "reason": "r"});
    client.call("/v1/locks/revoke", &revoke, 200);
    let output = waiter.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{what}: {output:?}");
    assert_eq!(output.stdout, b"job\n", "{what}");
    assert_eq!(client.inspect("job"), None, "{what}");
}

#[test]
fn a_program_that_was_deleted_still_starts_its_supervisor() {
    survives("deleted", |program| std::fs::remove_file(program).unwrap());
}

#[test]
fn a_program_that_was_replaced_starts_itself_and_not_the_new_one() {
    survives("replaced", |program| {
        let new = program.with_extension("new");
        std::fs::write(&new, "#!/bin/sh\necho another program; exit 1\n").unwrap();
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&new, program).unwrap();
    });
}

#[test]
fn a_program_whose_folder_is_gone_still_starts_its_supervisor() {
    let world = World::new();
    let folder = world.path().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("dlock");
    std::fs::copy(dlock(), &program).unwrap();
    let client = world.client();
    let wish = json!({"name": "job", "owner": "holder", "ttl_ms": 3_600_000});
    client.call("/v1/locks/acquire", &wish, 200);
    let mut run = world.program(&program);
    let mut waiter = run.args(["run", "job", "--", "sh", "-c", "exit 7"]).spawn().unwrap();
    eventually("it waits", || client.waiters("job") == 1);
    std::fs::remove_dir_all(&folder).unwrap();
    let revoke = json!({"name": "job", "actor": "a", "reason": "r"});
    client.call("/v1/locks/revoke", &revoke, 200);
    assert_eq!(waiter.wait().unwrap().code(), Some(7));
}
