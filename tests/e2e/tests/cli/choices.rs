//! Which store a command chooses, and what configuration may say (C3, C5).

use std::path::Path;

use crate::World;

/// A server and a store of its own beside it, each with a lock that tells them apart.
fn both() -> (World, World) {
    let (server, embedded) = (World::server(), World::embedded());
    server.acquire("at-the-server");
    embedded.acquire("in-the-file");
    (server, embedded)
}

#[test]
fn the_nearest_word_decides_where_locks_live() {
    let (server, embedded) = both();
    let url = format!("http://{}", server.server.as_ref().unwrap().address());
    let data = embedded.data();
    let data = data.to_str().unwrap();
    let file = embedded.place.path().join("server.toml");
    std::fs::write(&file, format!("server = {url:?}\n")).unwrap();
    let file = file.to_str().unwrap();
    let path_file = embedded.place.path().join("path.toml");
    std::fs::write(&path_file, format!("server = {url:?}\n[embedded]\npath = {data:?}\n")).unwrap();
    let path_file = path_file.to_str().unwrap();

    // `World::embedded` sets DLOCK_EMBEDDED_PATH, `World::server` DLOCK_SERVER.
    let there = |world: &World, words: &[&str]| {
        let (at_server, in_file) = ("at-the-server", "in-the-file");
        let code = |name| world.dlock(&[&["inspect", name], words].concat()).code;
        match (code(at_server), code(in_file)) {
            (Some(0), Some(1)) => at_server,
            (Some(1), Some(0)) => in_file,
            other => panic!("{words:?}: {other:?}"),
        }
    };
    assert_eq!(there(&server, &[]), "at-the-server");
    assert_eq!(there(&embedded, &[]), "in-the-file");
    assert_eq!(there(&server, &["--data-dir", data]), "in-the-file", "a flag beats DLOCK_SERVER");
    assert_eq!(there(&embedded, &["--server", &url]), "at-the-server");
    assert_eq!(
        there(&embedded, &["--config", file]),
        "in-the-file",
        "the environment beats a file"
    );
    assert_eq!(there(&server, &["--config", path_file]), "at-the-server");
    assert_eq!(there(&embedded, &["--config", file, "--server", &url]), "at-the-server");

    // With nothing but files.
    let with_file = |name: &str, file: &str| {
        let mut command = embedded.command(&["inspect", name, "--config", file]);
        command.env_remove("DLOCK_EMBEDDED_PATH").status().unwrap().code()
    };
    assert_eq!(with_file("at-the-server", file), Some(0));
    assert_eq!(with_file("at-the-server", path_file), Some(0), "a server beats a path beside it");
    // The file that the environment names, and an empty variable that is none.
    let mut command = server.command(&["inspect", "at-the-server"]);
    command.env("DLOCK_CONFIG", file).env("DLOCK_SERVER", "");
    assert_eq!(command.status().unwrap().code(), Some(0));

    let both = server.dlock(&["list", "--server", &url, "--data-dir", data]);
    assert_eq!((both.code, both.out.as_str()), (Some(64), ""), "they exclude each other: {both:?}");
}

#[test]
fn the_first_server_that_answers_is_asked() {
    let (server, _) = both();
    let url = format!("http://{}", server.server.as_ref().unwrap().address());
    let two = format!("http://127.0.0.1:1,{url}");
    assert_eq!(server.dlock(&["inspect", "at-the-server", "--server", &two]).code, Some(0));
}

#[test]
fn config_show_says_each_value_and_where_it_came_from() {
    let world = World::embedded();
    std::fs::write(
        world.place.path().join("dlock.toml"),
        "[lock]\ndefault.ttl = \"45s\"\nmax_locks = 7\n[http]\nlisten = \"127.0.0.1:1\"\n",
    )
    .unwrap();
    let mut command = world.command(&["config", "show", "--config", "dlock.toml"]);
    let said = crate::said(command.env("DLOCK_HTTP_LISTEN", "127.0.0.1:2"));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let row = |key: &str| {
        let line = said.out.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("lock.default.ttl"), "45s dlock.toml, lock.default.ttl");
    assert_eq!(row("lock.max_locks"), "7 dlock.toml, lock.max_locks");
    assert_eq!(row("http.listen"), "127.0.0.1:2 DLOCK_HTTP_LISTEN");
    assert_eq!(row("http.drain"), "10s default");
    assert_eq!(row("server"), "- default");
    let check = world.dlock(&["config", "check", "--config", "dlock.toml"]);
    assert_eq!((check.code, check.out.as_str(), check.err.as_str()), (Some(0), "", ""));
}

#[test]
fn broken_and_hostile_files_are_64_and_say_why_and_nothing_else() {
    let world = World::embedded();
    let path = world.place.path().join("odd.toml");
    let huge = format!("[lock]\nnamespace = \"{}\"\n", "x".repeat(100_000));
    let deep = format!("a = {}1{}\n", "[".repeat(5_000), "]".repeat(5_000));
    for (text, part) in [
        (&b"[lock"[..], "odd.toml"),
        (b"lock = 1\n", "is not a key"),
        (b"[lock]\nbackend = \"nonsense\"\n", "lock.backend: must be one of"),
        (b"[lock]\nbakend = \"memory\"\n", "the nearest is lock.backend"),
        (b"[lock]\nmax_locks = -1\n", "lock.max_locks"),
        (b"[lock]\nmax_locks = 1.5\n", "must be a text or a whole number"),
        (b"[lock]\nmax_locks = true\n", "must be a text or a whole number"),
        (b"[http]\nlisten = 1979-05-27\n", "must be a text or a whole number"),
        (b"server = \"http://me:secret@host\"\n", "must be http:// or https://"),
        (b"server = []\n", "server"),
        (b"\"\\u001b[31m\\u202e\" = 1\n", "\\u{1b}[31m\\u{202e}"),
        (b"a = 1\na = 2\n", "odd.toml"),
        (b"\xff\xfe\x00", "odd.toml"),
        (b"\0", "odd.toml"),
        (huge.as_bytes(), "lock.namespace"),
        (deep.as_bytes(), "odd.toml"),
    ] {
        std::fs::write(&path, text).unwrap();
        let shown = String::from_utf8_lossy(text.get(..60).unwrap_or(text)).into_owned();
        for command in [&["config", "check"][..], &["config", "show"], &["list"], &["serve"]] {
            let said = world.dlock(&[command, &["--config", "odd.toml"]].concat());
            assert_eq!((said.code, said.out.as_str()), (Some(64), ""), "{shown:?}: {said:?}");
            assert!(said.err.contains(part), "{shown:?}: {said:?}");
            assert!(said.err.chars().all(|c| c == '\n' || dlock::is_printable(c)), "{said:?}");
            assert!(!said.err.contains("secret"), "{said:?}");
        }
    }
    assert!(!world.data().exists(), "nothing was made");
}

#[test]
fn files_that_cannot_be_read_and_stray_variables_are_64() {
    let world = World::embedded();
    for file in ["absent.toml", "/", "/dev/full/x"] {
        let said = world.dlock(&["list", "--config", file]);
        assert_eq!(said.code, Some(64), "{said:?}");
        assert!(said.err.contains(file), "{said:?}");
    }
    for (name, value, part) in [
        ("DLOCK_LOCK_BAKEND", "memory", "the nearest is DLOCK_LOCK_BACKEND"),
        ("DLOCK_LOCK_DEFAULT_TTL", "5", "DLOCK_LOCK_DEFAULT_TTL"),
        ("DLOCK_CONFIG", "absent.toml", "absent.toml"),
    ] {
        let said = crate::said(world.command(&["list"]).env(name, value));
        assert_eq!(said.code, Some(64), "{said:?}");
        assert!(said.err.contains(part), "{said:?}");
    }
    // What `run` exports, and what orchestrators set, says nothing to dlock.
    let mut command = world.command(&["list"]);
    command.env("DLOCK_NAME", "x").env("DLOCK_NAMESPACE", "A").env("DLOCK_TOKEN", "x");
    command.env("DLOCK_OWNER", "").env("DLOCK_PORT_7420_TCP", "tcp://x");
    assert_eq!(crate::said(&mut command).code, Some(0));
}

#[test]
fn a_store_is_made_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::embedded();
    let home = world.place.path().join("home");
    world.acquire("k");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.data()), 0o700);
    // A relative path is one for all that is started from there.
    let words = ["run", "k", "--data-dir", "home", "--", "sh", "-c", "echo $DLOCK_EMBEDDED_PATH"];
    assert_eq!(world.dlock(&words).out.trim(), home.to_str().unwrap());
}
