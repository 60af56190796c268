//! `dlock run` as its users meet it: real processes over the embedded store (C3, C50 to C55).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
    time::Duration,
};

use dlock_e2e::{catches, dlock, eventually, runs, signal, unconfigured};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::Signal,
};
use tempfile::TempDir;

/// A folder with a store of its own.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// `dlock run job OPTIONS -- COMMAND`. Signals are as a terminal's shell leaves them, whatever
    /// the test itself was started from.
    fn run(&self, options: &[&str], command: &[&str]) -> Command {
        let mut run = Command::new("env");
        run.arg("--default-signal=TERM,INT,HUP,QUIT").arg(dlock()).args(["run", "job"]);
        run.arg("--data-dir").arg(self.path().join("data")).args(options).arg("--").args(command);
        run.current_dir(self.path()).stdin(Stdio::null());
        run.env_remove("DLOCK_SERVER").env_remove("DLOCK_EMBEDDED_PATH");
        run
    }

    /// Runs a script under the lock, to its end.
    fn sh(&self, options: &[&str], script: &str) -> std::process::Output {
        self.run(options, &["sh", "-c", script]).output().unwrap()
    }

    /// Starts a script that says one line first; answers that line too.
    fn start(&self, options: &[&str], script: &str) -> Started {
        let mut run = self.run(options, &["sh", "-c", script]);
        let mut child = run
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Started { child, output, line: line.trim().to_owned() }
    }

    /// The exit code of an attempt that does not wait: 0 if the lock was free, 75 if held.
    fn try_it(&self) -> Option<i32> {
        self.run(&["--no-wait"], &["true"]).stderr(Stdio::null()).status().unwrap().code()
    }

    /// Boot-clock readings that a script appended to a file, in hundredths of a second.
    fn readings(&self, file: &str) -> Vec<u64> {
        let text = std::fs::read_to_string(self.path().join(file)).unwrap_or_default();
        text.lines().filter_map(|line| line.replace('.', "").parse().ok()).collect()
    }
}

/// A command under the lock. Dropping it leaves nothing running.
struct Started {
    child: Child,
    output: BufReader<ChildStdout>,
    line: String,
}

impl Started {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns when every process that holds the command's standard output has ended.
    fn all_gone(&mut self) {
        let mut ready = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        // Nothing is written any more, so the end is the only thing that can come.
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut ready, Some(&patience)).unwrap(), 1, "processes are left");
        self.output.read_to_end(&mut Vec::new()).unwrap();
    }

    /// Its end, and what was said about it.
    fn end(&mut self) -> (ExitStatus, String) {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Stopped or not: its supervisor then ends the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Appends the boot clock to a file, again and again, deaf to every polite request; once in the
/// command's group and once in a group of its own.
const TICKING: &str = r#"
    trap "" TERM INT HUP
    tick='while :; do read now _ < /proc/uptime; echo $now >> ticks; sleep 0.02; done'
    sh -c "$tick" &
    timeout 1000 sh -c "$tick" &
    echo ready
    wait; wait; sleep 1000
"#;

#[test]
fn c53_exit_codes_are_exact() {
    let place = Place::new();
    let table = [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ];
    for (script, code) in table {
        assert_eq!(place.sh(&[], script).status.code(), Some(code), "{script}");
    }
    std::fs::write(place.path().join("plain"), "text").unwrap();
    for (command, code) in [("./absent", 127), ("absent-from-path", 127), ("./plain", 126)] {
        let output = place.run(&[], &[command]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{command}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(command));
        assert_eq!(place.try_it(), Some(0), "{command} left the lock held");
    }
}

#[test]
fn bad_usage_is_64() {
    let place = Place::new();
    for options in [&["--ttl", "5ms"][..], &["--wait", "x"], &["--nonsense"], &["--owner", ""]] {
        assert_eq!(place.sh(options, "true").status.code(), Some(64), "{options:?}");
    }
}

#[test]
fn the_command_knows_its_lock_and_tokens_rise() {
    let place = Place::new();
    let script = "env | grep ^DLOCK_ | sort; exit 3";
    let mut last = 0;
    for _ in 0..3 {
        let mut run = place.run(&["--owner", "me"], &["sh", "-c", script]);
        // Another server's address would lead what the command starts astray.
        let output = run.env("DLOCK_SERVER", "http://127.0.0.1:1").output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
            line.map(str::to_owned)
        };
        assert_eq!(value("DLOCK_NAME").unwrap(), "job");
        assert_eq!(value("DLOCK_NAMESPACE").unwrap(), "default");
        assert_eq!(value("DLOCK_OWNER").unwrap(), "me");
        assert_eq!(value("DLOCK_SERVER"), None);
        let path = value("DLOCK_EMBEDDED_PATH").unwrap();
        assert_eq!(Path::new(&path), place.path().join("data"));
        let token: u64 = value("DLOCK_TOKEN").unwrap().parse().unwrap();
        assert!(token > last);
        last = token;
    }
}

#[test]
fn a_held_lock_is_75_or_what_was_asked_and_says_who() {
    let place = Place::new();
    let mut holder = place.start(&["--owner", "the-holder"], "echo ready; cat");
    let refused = place.sh(&["--no-wait"], "echo never");
    assert_eq!(refused.status.code(), Some(75));
    assert_eq!(refused.stdout, b"");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("the-holder"), "{said}");
    let refused = place.sh(&["--wait", "200ms", "--conflict-exit-code", "9"], "echo never");
    assert_eq!(refused.status.code(), Some(9));
    assert_eq!(holder.end().0.code(), Some(0));
    assert_eq!(place.try_it(), Some(0));
}

#[test]
fn a_lease_is_kept_for_as_long_as_the_command_runs() {
    let place = Place::new();
    let mut holder = place.start(&["--ttl", "2s"], "echo ready; cat");
    // Two lifetimes and more.
    for _ in 0..45 {
        assert_eq!(place.try_it(), Some(75));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(holder.end().0.code(), Some(0));
}

#[test]
fn a_waiter_begins_when_the_holder_is_gone() {
    let place = Place::new();
    let mut holder = place.start(&[], "echo ready; cat; echo holder >> order");
    let mut waiter = place.run(&["--wait", "60s"], &["sh", "-c", "echo waiter >> order"]);
    let mut waiter = waiter.spawn().unwrap();
    eventually("the waiter waits", || catches(waiter.id(), Signal::TERM));
    assert_eq!(holder.end().0.code(), Some(0));
    assert!(waiter.wait().unwrap().success());
    assert_eq!(std::fs::read(place.path().join("order")).unwrap(), b"holder\nwaiter\n");
}

#[test]
fn c51_signals_are_passed_on_and_the_lock_is_free_afterwards() {
    let place = Place::new();
    for number in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        // The shell itself dies of it: background children would ignore INT and QUIT.
        let mut started = place.start(&[], "ulimit -c 0; echo ready; read forever");
        signal(started.pid(), number);
        started.all_gone();
        let stdin = started.child.stdin.take();
        let code = started.end().0.code();
        drop(stdin);
        assert_eq!(code, Some(128 + number.as_raw()), "{number:?}");
        assert_eq!(place.try_it(), Some(0), "{number:?} left the lock held");
    }
    // The command decides what becomes of it, and when. The child speaks, so that it is itself:
    // a copy of the shell that is not a `sleep` yet would swallow a signal that comes that early.
    let script = "trap 'kill $!; echo caught >> caught; exit 9' TERM; \
                  sh -c 'echo ready; exec sleep 1000' & wait";
    let mut started = place.start(&[], script);
    signal(started.pid(), Signal::TERM);
    started.all_gone();
    assert_eq!(started.end().0.code(), Some(9));
    assert!(place.path().join("caught").exists());
    assert_eq!(place.try_it(), Some(0));
}

/// As a service manager stops a service: everybody in it at once.
#[test]
fn c51_a_signal_to_command_and_dlock_at_once_ends_both() {
    let place = Place::new();
    for round in 0..40 {
        let mut started = place.start(&[], "echo $$; exec sleep 1000");
        signal(started.line.parse().unwrap(), Signal::TERM);
        if round % 2 == 1 {
            std::thread::sleep(Duration::from_millis(1));
        }
        signal(started.pid(), Signal::TERM);
        started.all_gone();
        eventually("dlock ends", || !runs(started.pid()));
        let (status, said) = started.end();
        assert_eq!(status.code(), Some(143), "{said}");
        assert!(!said.contains("could not be given back"), "{said}");
    }
    assert_eq!(place.try_it(), Some(0));
}

#[test]
fn c51_a_stopped_command_is_ended_too() {
    let place = Place::new();
    let mut started = place.start(&[], "echo ready; kill -STOP $$; exit 3");
    let dlock = started.pid();
    signal(dlock, Signal::TERM);
    eventually("dlock ends", || !runs(dlock));
    assert_eq!(started.end().0.code(), Some(143));
    assert_eq!(place.try_it(), Some(0));
}

/// Whoever starts dlock may ignore the ends of its children: what is ignored is inherited.
#[test]
fn c53_also_where_the_ends_of_children_were_ignored() {
    let place = Place::new();
    let mut run = Command::new("env");
    run.args(["--ignore-signal=CHLD"]).arg(dlock()).args(["run", "job", "--data-dir"]);
    run.arg(place.path().join("data")).args(["--", "sh", "-c", "sh -c 'exit 1'; exit 7"]);
    let mut child = unconfigured(&mut run).stdin(Stdio::null()).spawn().unwrap();
    eventually("dlock ends", || !runs(child.id()));
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert_eq!(place.try_it(), Some(0));
}

#[test]
fn c51_signals_end_the_wait_at_once_with_nothing_held() {
    let place = Place::new();
    let mut holder = place.start(&[], "echo ready; cat");
    for number in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut waiter = place.run(&["--wait", "1h"], &["sh", "-c", "echo never > ran"]);
        let mut waiter = waiter.spawn().unwrap();
        eventually("it listens", || catches(waiter.id(), number));
        signal(waiter.id(), number);
        assert_eq!(waiter.wait().unwrap().code(), Some(128 + number.as_raw()), "{number:?}");
    }
    assert_eq!(holder.end().0.code(), Some(0));
    assert_eq!(place.try_it(), Some(0));
    assert!(!place.path().join("ran").exists());
}

#[test]
fn c52_killing_dlock_kills_the_command_and_its_children() {
    let place = Place::new();
    let mut started = place.start(&["--ttl", "2s"], TICKING);
    started.child.kill().unwrap();
    assert_eq!(started.child.wait().unwrap().signal(), Some(9));
    started.all_gone();
    // Nobody gave the lock back: it is free when the lease ends, and not before they are dead.
    let next = place.sh(&["--wait", "60s"], "read now _ < /proc/uptime; echo $now > start");
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    let (ticks, start) = (place.readings("ticks"), place.readings("start")[0]);
    assert!(!ticks.is_empty());
    assert!(ticks.iter().all(|tick| *tick <= start), "{ticks:?} {start}");
}

#[test]
fn c52_killing_the_supervisor_kills_the_command_and_its_children() {
    let place = Place::new();
    // Children in groups of their own, too.
    let script = "(trap '' TERM; sleep 1000; sleep 1000) & timeout 1000 sleep 1000 & \
                  echo $PPID; wait";
    let mut started = place.start(&[], script);
    signal(started.line.parse().unwrap(), Signal::KILL);
    started.all_gone();
    let (status, said) = started.end();
    assert_eq!(status.code(), Some(70), "{said}");
    assert_eq!(place.try_it(), Some(0), "the lock was given back");
}

/// In a container, session and group of the first process may belong to another namespace: the
/// system then calls both 0. Where the system allows no namespace this runs without one.
#[test]
fn c52_also_below_the_first_process_of_a_container() {
    let place = Place::new();
    let contained = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let tried = Command::new("unshare").args(&contained[1..]).arg("true").output();
    let namespaces = tried.is_ok_and(|tried| tried.status.success());
    let (program, options) =
        if namespaces { (contained[0], &contained[1..]) } else { ("env", &[][..]) };
    // The supervisor is killed; what it left behind, in its group and in another, is dlock's to end.
    let command = "(sleep 1000.0052) & timeout 1000 sleep 1000.0052 & kill -KILL $PPID; wait";
    let script = r#""$1" run job --data-dir data -- sh -c "$2"; code=$?
        echo "code $code, left $(cat /proc/[0-9]*/cmdline 2>&- | tr '\0' '\n' | grep -c '^1000.0052$')""#;
    let mut shell = Command::new(program);
    shell.args(options).args(["sh", "-c", script, "sh"]).arg(dlock()).arg(command);
    let output =
        unconfigured(&mut shell).current_dir(place.path()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("code 70, left 0"), "namespaces: {namespaces}; {output:?}");
    assert_eq!(place.try_it(), Some(0), "the lock was given back");
}

#[test]
fn c50_a_dlock_that_is_stopped_loses_the_lock_with_everything_dead_before() {
    let place = Place::new();
    let mut started = place.start(&["--ttl", "2s"], TICKING);
    signal(started.pid(), Signal::STOP);
    let next = place.sh(&["--wait", "60s"], "read now _ < /proc/uptime; echo $now > start");
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    let (ticks, start) = (place.readings("ticks"), place.readings("start")[0]);
    assert!(!ticks.is_empty());
    assert!(ticks.iter().all(|tick| *tick <= start), "{ticks:?} {start}");
    started.all_gone();
    signal(started.pid(), Signal::CONT);
    let (status, said) = started.end();
    assert_eq!(status.code(), Some(79), "{said}");
    assert!(said.contains("lost"), "{said}");
}

#[test]
fn a_supervisor_that_is_stopped_and_then_killed_is_replaced_by_dlock_itself() {
    let place = Place::new();
    let script = "trap '' TERM; echo $PPID; (sleep 1000) & wait; sleep 1000";
    let mut started = place.start(&["--ttl", "2s"], script);
    signal(started.line.parse().unwrap(), Signal::STOP);
    // dlock goes on keeping the lease; a signal to it reaches nobody.
    signal(started.pid(), Signal::TERM);
    assert_eq!(place.try_it(), Some(75));
    signal(started.line.parse().unwrap(), Signal::KILL);
    started.all_gone();
    assert_eq!(started.end().0.code(), Some(70));
}

#[test]
fn the_lock_is_kept_until_what_the_command_left_behind_is_gone() {
    let place = Place::new();
    // One in the command's group, one in a group of its own; both end with the input.
    let script = "exec 3<&0; cat <&3 & timeout 1000 cat <&3 & echo $$; exit 5";
    let mut started = place.start(&["--ttl", "2s"], script);
    let command = started.line.parse().unwrap();
    eventually("the command itself has ended", || !runs(command));
    for _ in 0..25 {
        assert_eq!(place.try_it(), Some(75));
        std::thread::sleep(Duration::from_millis(100));
    }
    let (status, said) = started.end();
    assert_eq!(status.code(), Some(5), "{said}");
    assert_eq!(place.try_it(), Some(0));
}

/// What a process lists: descriptors, and masks of signals. Beyond the first 31 signals the C
/// library has some of its own, which it changes as it likes.
fn inheritance(listed: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(listed);
    let line = |line: &str| match line.split_once(":\t") {
        Some((name, mask)) => {
            format!("{name} {:x}", u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff)
        }
        None => line.to_owned(),
    };
    text.lines().map(line).collect()
}

#[test]
fn c54_a_daemon_is_let_go_and_inherits_nothing_of_ours() {
    let place = Place::new();
    let look = "ls /proc/self/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let under = place.sh(&[], look);
    let plain = Command::new("env")
        .args(["--default-signal=TERM,INT,HUP,QUIT", "sh", "-c", look])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(
        inheritance(&under.stdout),
        inheritance(&plain.stdout),
        "descriptors and signals are as without dlock"
    );
    let daemon = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 1000' \
                  < /dev/null > /dev/null 2>&1 & exit 0";
    assert_eq!(place.sh(&[], daemon).status.code(), Some(0));
    assert_eq!(place.try_it(), Some(0));
    eventually("the daemon runs", || place.path().join("pid").exists());
    let pid = std::fs::read_to_string(place.path().join("pid")).unwrap().trim().parse().unwrap();
    assert!(runs(pid));
    signal(pid, Signal::KILL);
}

#[test]
fn c55_bytes_pass_untouched_and_ends_of_streams_are_seen() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..1_000_003_u32).map(|n| (n % 251) as u8).collect();
    let mut run = place.run(&[], &["cat"]);
    let mut run = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = run.stdin.take().unwrap();
    let written = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&written).unwrap());
    let output = run.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == bytes, "{} bytes came back", output.stdout.len());

    // The command closes its output and goes on: whoever reads it sees the end now.
    let mut started = place.start(&[], "echo ready; exec >&-; read forever; exit 4");
    started.all_gone();
    assert!(runs(started.pid()));
    assert_eq!(started.end().0.code(), Some(4));
    // The command closes its input and goes on: whoever writes it is told.
    let mut started =
        place.start(&[], "exec <&-; echo ready; while [ ! -e stop ]; do sleep 0.05; done");
    let mut input = started.child.stdin.take().unwrap();
    eventually("the pipe is broken", || input.write_all(b"x").is_err());
    std::fs::write(place.path().join("stop"), "").unwrap();
    assert_eq!(started.end().0.code(), Some(0));
}

/// Runs shell lines in a session with a terminal of its own; what is typed goes through the pipe.
fn on_a_terminal(place: &Place, lines: &str) -> Child {
    let mut script = Command::new("env");
    script.args([
        "--default-signal=TERM,INT,HUP,QUIT",
        "script",
        "--quiet",
        "--return",
        "--command",
        lines,
        "/dev/null",
    ]);
    script.env("DLOCK", dlock()).env("SHELL", "/bin/sh").current_dir(place.path());
    script.env("DLOCK_EMBEDDED_PATH", place.path().join("data")).env_remove("DLOCK_SERVER");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_command_gets_the_terminal_and_gives_it_back() {
    let place = Place::new();
    // Fields 5 and 8: the process's group, and the group that has the terminal.
    let command = r#"read word; set -- $(cat /proc/$$/stat); [ $5 = $8 ] && echo "mine $word""#;
    std::fs::write(place.path().join("command"), command).unwrap();
    let lines = r#""$DLOCK" run job -- sh ./command; echo "code $?"; read word; echo "ours $word""#;
    let mut child = on_a_terminal(&place, lines);
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in ["mine one", "code 0", "ours two"] {
        assert!(said.contains(expected), "no {expected:?} in {said:?}");
    }
}

#[test]
fn in_a_pipeline_the_command_gets_the_terminal_when_it_needs_it() {
    let place = Place::new();
    std::fs::write(place.path().join("command"), r#"read word; echo "mine $word""#).unwrap();
    let lines = r#""$DLOCK" run job -- sh ./command | cat; read word; echo "ours $word""#;
    let mut child = on_a_terminal(&place, lines);
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in ["mine one", "ours two"] {
        assert!(said.contains(expected), "no {expected:?} in {said:?}");
    }
}

#[test]
fn keys_reach_the_command_and_stopping_it_has_no_lasting_effect() {
    let place = Place::new();
    let lines = r#"exec "$DLOCK" run job -- sh -c 'echo ready; while [ ! -e go ]; do sleep 0.05; done; echo on; exec sleep 1000'"#;
    let mut child = on_a_terminal(&place, lines);
    let mut keys = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut expect = |word: &str| {
        let mut line = String::new();
        while !line.ends_with(word) {
            let mut byte = [0];
            said.read_exact(&mut byte).unwrap();
            line.push(char::from(byte[0]));
        }
    };
    expect("ready");
    // Ctrl-Z, which the terminal echoes, and then work goes on all the same.
    keys.write_all(&[0x1a]).unwrap();
    expect("^Z");
    std::fs::write(place.path().join("go"), "").unwrap();
    expect("on");
    // Ctrl-C.
    keys.write_all(&[0x03]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.try_it(), Some(0));
}
