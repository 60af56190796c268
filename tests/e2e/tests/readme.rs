//! The README's examples, run as they stand: they are the first thing a newcomer types.

use std::{path::Path, process::Command};

use dlock_e2e::{
    dlock,
    readme::{examples, promised},
    server::Server,
    unconfigured,
};

/// The address the README names, which is the default.
const DEFAULTS: [&str; 2] = ["localhost:7420", "127.0.0.1:7420"];

#[test]
fn the_examples_of_the_readme_run_and_print_what_they_say() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = std::fs::read_to_string(&page)
        .unwrap_or_else(|error| panic!("README.md cannot be read: {error}"));
    let found = examples(&page).unwrap();
    assert!(
        !found.is_empty(),
        "README.md has no example to run: put <!-- test: NAME --> on the line before a ```sh block"
    );

    let place = tempfile::tempdir().unwrap();
    let (data, home) = (place.path().join("data"), place.path().join("home"));
    std::fs::create_dir(&home).unwrap();
    let server = Server::start(&data, &[]);

    // One script, so that what one example sets the next one sees.
    let mut script = String::from("exec 2>&1\n");
    for example in &found {
        script.push_str(&format!("echo '## {}'\n{}", example.name, example.code));
    }
    for default in DEFAULTS {
        script = script.replace(default, &server.address().to_string());
    }

    // Whatever the binary under test is called, here it is `dlock`.
    let ours = place.path().join("bin");
    std::fs::create_dir(&ours).unwrap();
    std::os::unix::fs::symlink(dlock(), ours.join("dlock")).unwrap();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(ours).chain(std::env::split_paths(&paths));
    let mut bash = Command::new("timeout");
    bash.args(["--kill-after=5", "120", "bash", "-euo", "pipefail", "-c", &script]);
    unconfigured(&mut bash)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .env("HOME", &home)
        .env("XDG_STATE_HOME", home.join(".local/state"))
        .env("DLOCK_EMBEDDED_PATH", &data)
        .current_dir(&home)
        .stdin(std::process::Stdio::null());
    let output = bash.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "the examples printed:\n{printed}");

    let mut rest = &*printed;
    for example in &found {
        for promise in promised(&example.code) {
            let at = rest.find(promise).unwrap_or_else(|| {
                panic!("{}: {promise:?} is not in (the rest of) {printed}", example.name)
            });
            rest = &rest[at + promise.len()..];
        }
    }
}
