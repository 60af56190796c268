//! What people see at a terminal (C3): tables, and who has the lock that `run` waits for.

use std::{
    io::{Read as _, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
};

use dlock_e2e::{dlock, eventually, unconfigured};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::World;

/// A shell on a terminal of its own; what is typed goes through the pipe. Dropping it hangs up.
struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    said: String,
}

impl Terminal {
    /// Runs shell lines on a terminal this wide; `$DLOCK` is the program, with the world's locks.
    fn start(world: &World, columns: u16, lines: &str) -> Self {
        // Signals are as a terminal's shell leaves them, whatever the test itself was started from.
        let mut script = Command::new("env");
        script.args(["--default-signal=TERM,INT,HUP,QUIT", "script"]);
        let lines = format!("stty rows 24 cols {columns} -echoctl; {lines}");
        script.args(["--quiet", "--return", "--command", &lines, "/dev/null"]);
        unconfigured(&mut script).env("DLOCK", dlock()).env("SHELL", "/bin/sh");
        script.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("CLICOLOR");
        // Or all terminals are taken for colourful.
        script.env_remove("CI");
        match &world.server {
            Some(server) => script.env("DLOCK_SERVER", format!("http://{}", server.address())),
            None => script.env("DLOCK_EMBEDDED_PATH", world.data()),
        };
        script.current_dir(world.place.path());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let keys = child.stdin.take();
        Self { child, keys, said: String::new() }
    }

    fn press(&mut self, keys: &[u8]) {
        let pipe = self.keys.as_mut().unwrap();
        pipe.write_all(keys).unwrap();
        pipe.flush().unwrap();
    }

    /// Reads until it has said this.
    #[track_caller]
    fn until(&mut self, word: &str) {
        while !self.said.contains(word) {
            assert!(self.read(), "no {word:?} in {:?}", self.said);
        }
    }

    /// All that it has said, once it has ended.
    fn end(mut self) -> String {
        while self.read() {}
        self.child.wait().unwrap();
        std::mem::take(&mut self.said)
    }

    /// Reads more; false at the end.
    fn read(&mut self) -> bool {
        let out = self.child.stdout.as_mut().unwrap();
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(out, PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(ready, 1, "nothing more comes after {:?}", self.said);
        let mut bytes = [0; 4_096];
        let read = out.read(&mut bytes).unwrap();
        self.said.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read > 0
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that lines say on a terminal.
fn said_at(world: &World, columns: u16, lines: &str) -> String {
    Terminal::start(world, columns, lines).end().replace("\r\n", "\n")
}

const CLEAR: &str = "\r\u{1b}[2K";
const STYLES: [&str; 5] = ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"];

/// Without the styles that are ours.
fn bare(said: &str) -> String {
    STYLES.iter().fold(said.to_owned(), |said, style| said.replace(style, ""))
}

#[test]
fn tables_fit_the_terminal_and_colours_can_be_refused() {
    let world = World::embedded();
    world.acquire(&"long".repeat(50));
    world.acquire("short");
    let lines =
        r#""$DLOCK" list; "$DLOCK" config show; "$DLOCK" inspect nobody; "$DLOCK" acquire short"#;
    for columns in [40, 80, 132] {
        let said = said_at(&world, columns, lines);
        for word in ["\u{1b}[1mNAME", "\u{1b}[32mfree\u{1b}[0m", "\u{1b}[33mnot granted"] {
            assert!(said.contains(word), "{columns}: no {word:?} in {said:?}");
        }
        let bare = bare(&said);
        assert!(!bare.contains('\u{1b}'), "{bare:?}");
        for line in bare.lines() {
            assert!(line.chars().count() <= usize::from(columns), "{columns}: {line:?}");
        }
        let long: usize = bare.matches("long").count();
        assert!(long >= 40, "the long name is folded, not cut: {bare}");
    }
    let plain = said_at(&world, 80, &format!("NO_COLOR=1; export NO_COLOR; {lines}"));
    assert!(!plain.contains('\u{1b}') && plain.contains("NAME"), "{plain:?}");
    let dumb = said_at(&world, 80, &format!("TERM=dumb; export TERM; {lines}"));
    assert!(!dumb.contains('\u{1b}') && dumb.contains("NAME"), "{dumb:?}");
    // Not on a terminal: no folding, no lines, no colours.
    let piped = said_at(&world, 40, r#""$DLOCK" list | cat"#);
    assert!(!piped.contains('\u{1b}') && piped.contains(&"long".repeat(50)), "{piped:?}");
    // JSON is the same everywhere.
    let json = said_at(&world, 40, r#""$DLOCK" list --json"#);
    assert_eq!(json.lines().count(), 1, "{json:?}");
}

#[test]
fn c33_hostile_names_reach_no_terminal() {
    let world = World::embedded();
    // What a name may be, and what a terminal must not get.
    let hostile = "a\u{202e}\u{200b}\u{2066}\u{feff}\u{e0041}z";
    world.acquire(hostile);
    std::fs::write(world.place.path().join("name"), hostile).unwrap();
    let lines = r#"name=$(cat name)
        "$DLOCK" list; "$DLOCK" inspect "$name"; "$DLOCK" acquire "$name"
        "$DLOCK" list --limit 1 --prefix a
        DLOCK_EMBEDDED_PATH=$(printf '/tmp/\033[31m\r\n/x') "$DLOCK" config show
        "$DLOCK" run "$name" --wait 700ms -- true"#;
    let said = said_at(&world, 200, lines);
    assert!(said.contains("a\\u{202e}\\u{200b}\\u{2066}\\u{feff}\\u{e0041}z"), "{said:?}");
    assert!(said.contains("/tmp/\\u{1b}[31m"), "{said:?}");
    let bare = bare(&said).replace(CLEAR, "").replace('\r', "");
    let odd: Vec<_> = bare.chars().filter(|c| *c != '\n' && !dlock::is_printable(*c)).collect();
    assert!(odd.is_empty(), "{odd:?} in {bare:?}");
    // Where no terminal is, a name is what it is.
    assert!(world.dlock(&["list"]).out.contains(hostile));
}

/// A lock that somebody holds for long, and how to give it back.
fn held(world: &World) -> impl Fn() {
    let taken = world.json(&["acquire", "job", "--ttl", "1h", "--owner", "the-holder"], 0);
    let (session, token) = crate::grant(&taken);
    move || {
        world.json(&["release", "job", "--session", &session, "--token", &token], 0);
    }
}

#[test]
fn a_wait_shows_who_has_the_lock_and_leaves_the_terminal_clean() {
    let world = World::embedded();
    let release = held(&world);
    let mut terminal =
        Terminal::start(&world, 60, r#""$DLOCK" run job -- echo started; echo "code $?""#);
    terminal.until("held by the-holder for");
    release();
    let said = terminal.end();
    let (before, after) = said.split_once("started").unwrap();
    assert!(before.ends_with(CLEAR), "{said:?}");
    assert_eq!(after.trim(), "code 0", "{said:?}");
    // The line never wraps: it is drawn over itself and cleared.
    for line in before.split(CLEAR) {
        assert!(line.chars().count() <= 60 && !line.contains('\n'), "{line:?}");
    }
}

#[test]
fn a_wait_at_a_server_shows_how_many_wait_and_outlives_failed_looks() {
    let mut world = World::server();
    drop(held(&world));
    let mut other = world.command(&["acquire", "job", "--wait", "1h", "--ttl", "1s"]);
    let mut other = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let client = world.server.as_ref().unwrap().client();
    eventually("somebody else waits", || client.waiters("job") == 1);
    let mut terminal = Terminal::start(&world, 80, r#""$DLOCK" run job -- echo started"#);
    terminal.until("; 2 waiting");
    let server = world.server.as_mut().unwrap();
    server.kill();
    // It goes on turning while nobody answers.
    let turns = terminal.said.matches(CLEAR).count();
    while terminal.said.matches(CLEAR).count() < turns + 15 {
        assert!(terminal.read());
    }
    server.restart();
    other.kill().unwrap();
    other.wait().unwrap();
    eventually("it waits again", || client.waiters("job") == 1);
    let revoke = serde_json::json!({"name": "job", "actor": "a", "reason": "r"});
    client.call("/v1/locks/revoke", &revoke, 200);
    let said = terminal.end();
    let (before, after) = said.split_once("started").unwrap();
    assert!(before.ends_with(CLEAR) && after.trim().is_empty(), "{said:?}");
    // Nothing else was written meanwhile: no log line, no error of a look.
    let lines = before.split(CLEAR).filter(|line| !line.is_empty());
    for line in lines {
        assert!(line.contains("waiting for \"job\"") && !line.contains('\n'), "{line:?}");
    }
}

#[test]
fn every_end_of_a_wait_leaves_the_terminal_clean() {
    let world = World::embedded();
    let _keep = held(&world);
    // In time, and not.
    let said =
        said_at(&world, 80, r#""$DLOCK" run job --wait 700ms -- echo never; echo "code $?""#);
    let (before, after) = said.split_once("dlock: not granted").unwrap();
    assert!(before.ends_with(CLEAR) && before.contains("waiting for \"job\""), "{said:?}");
    assert!(after.ends_with("code 75\n") && !after.contains("waiting for"), "{said:?}");
    // By a key, and by a signal.
    for (press, code) in [(true, 130), (false, 143)] {
        let lines = r#"sh -c 'echo $$ > pid.new; mv pid.new pid; exec "$DLOCK" run job -- echo never'
            echo "code $?""#;
        let mut terminal = Terminal::start(&world, 80, &format!("trap : INT; {lines}"));
        terminal.until("held by the-holder");
        if press {
            terminal.press(&[3]);
        } else {
            let pid = std::fs::read_to_string(world.place.path().join("pid")).unwrap();
            dlock_e2e::signal(pid.trim().parse().unwrap(), rustix::process::Signal::TERM);
        }
        let said = terminal.end();
        let (before, _) = said.rsplit_once(&format!("code {code}")).unwrap();
        assert!(before.trim_end_matches(['\n', '^', 'C']).ends_with(CLEAR), "{said:?}");
    }
    // The store is gone.
    let lines = r#""$DLOCK" run job --server http://127.0.0.1:1 --wait 2s -- true; echo "code $?""#;
    let said = said_at(&world, 80, lines);
    let (before, _) = said.split_once("dlock: cannot acquire").unwrap();
    assert!(before.is_empty() || before.ends_with(CLEAR), "{said:?}");
    assert!(said.ends_with("code 69\n"), "{said:?}");
}

#[test]
fn a_wait_is_silent_off_a_terminal_and_in_the_background() {
    let world = World::embedded();
    let _keep = held(&world);
    let piped = world.dlock(&["run", "job", "--wait", "700ms", "--", "true"]);
    assert_eq!((piped.code, piped.out.as_str()), (Some(75), ""));
    assert_eq!(piped.err.lines().count(), 1, "{piped:?}");
    assert!(piped.err.starts_with("dlock: not granted"), "{piped:?}");
    let wait = r#""$DLOCK" run job --wait 700ms -- true"#;
    for lines in [
        format!("TERM=dumb {wait}"),
        format!("{wait} 2>&1 | cat"),
        format!("set -m; {wait} & wait"),
    ] {
        let said = said_at(&world, 80, &lines);
        assert!(!said.contains("waiting for") && !said.contains(CLEAR), "{lines}: {said:?}");
    }
}

#[test]
fn a_stopped_terminal_does_not_hold_up_the_command() {
    let world = World::embedded();
    let release = held(&world);
    let mut terminal = Terminal::start(&world, 80, r#""$DLOCK" run job -- touch started"#);
    terminal.until("held by the-holder");
    // Ctrl-S; the terminal takes nothing any more.
    terminal.press(&[0x13]);
    release();
    eventually("the command runs", || world.place.path().join("started").exists());
    // Ctrl-Q: it has ended, or does now. The line may be left: nothing could be written any more.
    terminal.press(&[0x11]);
    terminal.end();
}

#[test]
fn a_wait_can_be_stopped_and_brought_back() {
    let world = World::embedded();
    let release = held(&world);
    let lines =
        r#"set -m; "$DLOCK" run job -- echo started; echo "stopped $?"; fg; echo "code $?""#;
    let mut terminal = Terminal::start(&world, 80, lines);
    terminal.until("held by the-holder");
    // Ctrl-Z
    terminal.press(&[0x1a]);
    terminal.until("stopped 148");
    release();
    let said = terminal.end();
    let (_, after) = said.split_once("stopped 148").unwrap();
    assert!(after.contains("started") && after.trim_end().ends_with("code 0"), "{said:?}");
}
