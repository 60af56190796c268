//! What `run` does at a server as it does anywhere.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use dlock_e2e::{catches, eventually, signal};
use rustix::process::Signal;

use crate::{TICKING, World};

#[test]
fn c53_exit_codes_are_exact() {
    let world = World::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ] {
        assert_eq!(world.run(&[], script).status().unwrap().code(), Some(code), "{script}");
        assert_eq!(world.client().inspect("job"), None, "{script} left the lock held");
    }
    std::fs::write(world.path().join("plain"), "text").unwrap();
    for (command, code) in [("./absent", 127), ("absent-from-path", 127), ("./plain", 126)] {
        let output = world.dlock(&["run", "job", "--", command]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(world.client().inspect("job"), None, "{command} left the lock held");
    }
}

#[test]
fn the_command_finds_its_own_server_and_nothing_else() {
    let world = World::new();
    let script = r#"
        test "$DLOCK_EMBEDDED_PATH" = "" || exit 9
        "$DLOCK" inspect "$DLOCK_NAME" --json > seen && "$DLOCK" run job --no-wait -- true"#;
    let status = world.run(&["--owner", "me"], script).status().unwrap();
    assert_eq!(status.code(), Some(75), "it is held, as the command sees it");
    let seen = std::fs::read_to_string(world.path().join("seen")).unwrap();
    assert!(seen.contains(r#""owner":"me""#), "{seen}");
}

#[test]
fn a_lease_is_kept_for_as_long_as_the_command_runs() {
    let world = World::new();
    let mut holder = world.start(&["--ttl", "2s"], "echo ready; cat");
    let first = world.client().inspect("job").unwrap();
    // Two lifetimes and more.
    for _ in 0..45 {
        let now = world.client().inspect("job").unwrap();
        assert_eq!(now["fencing_token"], first["fencing_token"]);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(holder.end().0, Some(0));
    assert_eq!(world.client().inspect("job"), None);
}

#[test]
fn c51_signals_end_the_wait_at_once_with_nothing_held() {
    let world = World::new();
    let mut holder = world.start(&[], "echo ready; cat");
    for number in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut waiter = world.run(&[], "echo never > ran").spawn().unwrap();
        eventually("it waits", || world.client().waiters("job") == 1);
        assert!(catches(waiter.id(), number));
        signal(waiter.id(), number);
        assert_eq!(waiter.wait().unwrap().code(), Some(128 + number.as_raw()), "{number:?}");
        eventually("its wait is over", || world.client().waiters("job") == 0);
    }
    assert_eq!(holder.end().0, Some(0));
    assert_eq!(world.client().inspect("job"), None);
    assert!(!world.path().join("ran").exists());
}

#[test]
fn c52_killing_dlock_kills_the_command_and_the_lock_is_free_within_its_lifetime() {
    let world = World::new();
    let mut started = world.start(&["--ttl", "2s"], TICKING);
    started.child.kill().unwrap();
    assert_eq!(started.child.wait().unwrap().signal(), Some(9));
    started.all_gone();
    let next = world.run(&["--wait", "60s"], "read now _ < /proc/uptime; echo $now > start");
    assert_eq!({ next }.status().unwrap().code(), Some(0));
    let (ticks, start) = (world.readings("ticks"), world.readings("start")[0]);
    assert!(!ticks.is_empty() && ticks.iter().all(|tick| *tick <= start), "{ticks:?} {start}");
}
