//! `dlock run` over a store that misbehaves as told: loss, silence, and the exit codes of both.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

/// Runs a script under a scripted lock, to its end.
fn run(ttl_ms: u32, script: &[(&str, &str)], command: &str, folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scripted-run"))
        .arg(ttl_ms.to_string())
        .args(["sh", "-c", command])
        .envs(script.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Children that hear no TERM, one of them in a group of its own. Their output is the test's pipe,
/// so the run is not over for the test before they are dead.
const DEAF: &str = r#"
    trap "" TERM
    (sleep 1000; sleep 1000) &
    timeout 1000 sh -c 'trap "" TERM; sleep 1000; sleep 1000' &
    wait; wait; sleep 1000; sleep 1000
"#;

#[test]
fn c50_loss_of_any_kind_ends_everything_and_is_79() {
    let folder = tempfile::tempdir().unwrap();
    for keep in ["revoked", "expired", "fail", "hang"] {
        let output = run(1_500, &[("SCRIPT_KEEP", keep)], DEAF, folder.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(79), "{keep}: {said}");
        assert!(said.contains("is lost"), "{keep}: {said}");
    }
}

#[test]
fn a_lost_lock_that_nobody_takes_back_does_not_keep_dlock() {
    let folder = tempfile::tempdir().unwrap();
    for keep in ["hang", "revoked"] {
        let script = [("SCRIPT_KEEP", keep), ("SCRIPT_RELEASE", "hang")];
        let output = run(1_500, &script, "sleep 1000", folder.path());
        assert_eq!(output.status.code(), Some(79), "{keep}: {output:?}");
    }
}

#[test]
fn a_release_that_nobody_answers_keeps_dlock_no_longer_than_the_lease() {
    let folder = tempfile::tempdir().unwrap();
    // The command is done at once, and its exit code stands; the release would hang for ever.
    let output = run(1_500, &[("SCRIPT_RELEASE", "hang")], "exit 7", folder.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("could not be given back"), "{said}");
}

#[test]
fn a_polite_command_is_asked_first() {
    let folder = tempfile::tempdir().unwrap();
    let polite = "trap 'echo cleaned; kill $!; exit 0' TERM; sleep 1000 & wait";
    let ask = |keep| run(8_000, &[("SCRIPT_KEEP", keep)], polite, folder.path());
    std::thread::scope(|scope| {
        for asked in ["revoked", "fail"].map(|keep| scope.spawn(move || ask(keep))) {
            let output = asked.join().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "cleaned\n");
            assert_eq!(output.status.code(), Some(79));
        }
    });
}

#[test]
fn dlock_itself_ends_everything_when_its_supervisor_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!("kill -STOP $PPID; {DEAF}");
    let output = run(1_500, &[("SCRIPT_KEEP", "fail")], &command, folder.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(79), "{said}");
    assert!(said.contains("supervisor"), "{said}");
}

#[test]
fn what_the_acquire_says_decides_the_code() {
    let folder = tempfile::tempdir().unwrap();
    for (answer, code) in [("fail", 69), ("denied", 77), ("held", 75)] {
        let output = run(1_000, &[("SCRIPT_ACQUIRE", answer)], "echo ran", folder.path());
        assert_eq!(output.status.code(), Some(code), "{answer}");
        assert_eq!(output.stdout, b"", "{answer}");
        assert_ne!(output.stderr, b"", "{answer}");
    }
}

#[test]
fn a_release_that_finds_nothing_is_loss_unless_an_earlier_try_may_have_done_it() {
    let folder = tempfile::tempdir().unwrap();
    let table = [("false", 79), ("refused-then-false", 79), ("unknown-then-false", 6), ("fail", 6)];
    for (release, code) in table {
        let output = run(1_000, &[("SCRIPT_RELEASE", release)], "exit 6", folder.path());
        assert_eq!(output.status.code(), Some(code), "{release}");
    }
}
