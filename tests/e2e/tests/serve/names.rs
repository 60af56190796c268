//! C30: names are bytes; the same through HTTP and the command line.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

use dlock_e2e::{dlock, unconfigured};

use crate::{LONG, RELEASE, World, acquire, naming, token};

/// `é` in both normal forms among them.
const NAMES: [&str; 20] = [
    "a",
    "a/",
    "a/b",
    "/a",
    "//",
    ".",
    "..",
    "%2F",
    "%25",
    "a+b",
    "a b",
    "?x=1",
    "#",
    "\u{1f512}",
    "\u{e9}",
    "e\u{301}",
    "K",
    "k",
    "a&namespace=b",
    "\u{fffd}",
];

#[test]
fn c30_names_that_look_alike_are_different_locks() {
    let world = World::new();
    let client = world.client();
    let run = |name: &str| {
        let mut run = Command::new(dlock());
        run.args(["run", name, "--no-wait", "--data-dir"]).arg(world.place.path());
        run.args(["--", "sh", "-c", r#"printf %s "$DLOCK_NAME""#]);
        unconfigured(&mut run).stdin(Stdio::null());
        run.output().unwrap()
    };
    let mut grants = Vec::new();
    for (nth, name) in NAMES.into_iter().enumerate() {
        assert_eq!(client.inspect(name), None, "{name:?} is like one before it");
        let grant = acquire(&client, name, &format!("owner-{nth}"), LONG);
        assert_eq!(grant["name"], name);
        grants.push(grant);
    }
    let tokens: BTreeSet<_> = grants.iter().map(token).collect();
    assert_eq!(tokens.len(), NAMES.len());
    for (nth, (name, grant)) in NAMES.into_iter().zip(&grants).enumerate() {
        let info = client.inspect(name).unwrap();
        assert_eq!(info["name"], name);
        assert_eq!(info["owner"], format!("owner-{nth}"));
        assert_eq!(token(&info), token(grant));
        assert_eq!(run(name).status.code(), Some(75), "{name:?} is held for the command line, too");
    }
    for (name, grant) in NAMES.into_iter().zip(&grants) {
        assert_eq!(client.call(RELEASE, &naming(grant), 200)["released"], true);
        let output = run(name);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), name);
    }
    assert!(NAMES.into_iter().all(|name| client.inspect(name).is_none()));
}
