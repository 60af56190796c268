//! Output that nobody reads, or that cannot be written.

use std::{
    fs::File,
    process::{Command, Stdio},
};

use crate::World;

/// A pipe whose reader is gone before anything is written.
fn into_nothing(command: &mut Command) -> Option<i32> {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let writer = reader.stdin.take().unwrap();
    reader.wait().unwrap();
    command.stdout(Stdio::from(writer)).stderr(Stdio::null()).status().unwrap().code()
}

#[test]
fn a_closed_pipe_is_no_error() {
    let world = World::embedded();
    world.acquire("held");
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["inspect", "held"],
        &["acquire", "free"],
        &["health"],
        &["config", "show"],
        &["completions", "bash"],
        &["man"],
        &["postgres", "schema"],
        &["--help"],
        &["--version"],
    ] {
        assert_eq!(into_nothing(&mut world.command(words)), Some(0), "{words:?}");
    }
    // An answer that is a no stays one.
    assert_eq!(into_nothing(&mut world.command(&["acquire", "held"])), Some(75));
    assert_eq!(into_nothing(&mut world.command(&["inspect", "nobody"])), Some(1));
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let world = World::embedded();
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["config", "show"],
        &["completions", "zsh"],
        &["man"],
        &["postgres", "schema"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = world.command(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(126), "{words:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("cannot be written"), "{words:?}: {said}");
    }
}

#[test]
fn man_writes_a_page_for_each_command_or_prints_its_own() {
    let world = World::embedded();
    let page = world.dlock(&["man"]);
    assert_eq!(page.code, Some(0));
    assert!(page.out.contains(".TH dlock 1"), "{page:?}");
    let pages = world.place.path().join("pages");
    std::fs::create_dir(&pages).unwrap();
    assert_eq!(world.dlock(&["man", "pages"]).code, Some(0));
    for name in [
        "dlock.1",
        "dlock-run.1",
        "dlock-session-open.1",
        "dlock-config-show.1",
        "dlock-postgres-schema.1",
    ] {
        let page = std::fs::read_to_string(pages.join(name)).unwrap();
        assert!(page.contains(".TH"), "{name}");
    }
    assert_eq!(world.dlock(&["man", "absent/folder"]).code, Some(126));
}

#[test]
fn every_shell_has_completions_that_name_the_commands() {
    let world = World::embedded();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.dlock(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (Some(0), ""), "{shell}");
        for word in ["acquire", "revoke", "no-wait", "postgres-url", "schema"] {
            assert!(script.out.contains(word), "{shell} has no {word}");
        }
    }
}
