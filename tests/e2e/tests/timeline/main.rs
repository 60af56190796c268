//! A loss from the cut to the next grant, recorded on the boot clock: `dlock run` at a real server,
//! the line between the two cut, a command that does not end when it is asked to.
//!
//! The page `tasks/timeline.md` shows one such run. `TEST_DLOCK_BLESS=1` makes this test write it;
//! otherwise the page must tell of the events that are recorded here, in this order.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod page;

use std::{
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use dlock::{Clock, Moment, SystemClock};
use dlock_e2e::{client::Client, dlock, eventually, server::Server, unconfigured};
use dlock_faults::Proxy;
use serde_json::json;

/// The lifetime of the lock: long enough that a busy machine meets the schedule of the end, TERM a
/// quarter and KILL an eighth before the deadline.
const TTL: Duration = Duration::from_secs(6);

/// Hears TERM, writes down when, and goes on; with a child that does not even hear it.
const COMMAND: &str = r#"
    trap '"$CLOCK" now term' TERM
    sh -c 'trap "" TERM; exec "$CLOCK" tick ticks' &
    while :; do wait; sleep 0.01; done
"#;

fn now() -> Moment {
    SystemClock::new().now()
}

/// `dlock run`. Dropped, it is killed, and its supervisor ends the rest.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(server: SocketAddr, folder: &Path) -> Running {
    let mut run = Command::new(dlock());
    run.args(["run", "job", "--server", &format!("http://{server}")]);
    run.args(["--ttl", &format!("{}s", TTL.as_secs()), "--", "sh", "-c", COMMAND]);
    run.current_dir(folder);
    unconfigured(&mut run).env("CLOCK", env!("CARGO_BIN_EXE_boot-clock"));
    run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(run.spawn().unwrap())
}

/// When dlock says that the lock is lost; `None` if it never does.
fn noticed(run: &mut Running) -> JoinHandle<Option<Moment>> {
    let said = BufReader::new(run.0.stderr.take().unwrap());
    thread::spawn(move || {
        let mut noticed = None;
        for line in said.lines() {
            if line.unwrap().contains("is lost") {
                noticed.get_or_insert_with(now);
            }
        }
        noticed
    })
}

/// When nothing is left that has the command's standard output: the command, its child, and
/// whatever else they started.
fn gone(run: &mut Running) -> JoinHandle<Moment> {
    let mut output = run.0.stdout.take().unwrap();
    thread::spawn(move || {
        output.read_to_end(&mut Vec::new()).unwrap();
        now()
    })
}

/// When somebody else who waits at the server itself is granted the lock, and by which token.
fn next_grant(client: Client) -> JoinHandle<(Moment, u64)> {
    let wish = json!({"name": "job", "owner": "next", "ttl_ms": 60_000, "max_wait_ms": 120_000});
    thread::spawn(move || {
        let grant = client.call("/v1/locks/acquire", &wish, 200);
        (now(), grant["fencing_token"].as_u64().unwrap())
    })
}

/// What `boot-clock` wrote.
fn readings(file: &Path) -> Vec<Moment> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| Moment::from_nanos(line.parse().unwrap())).collect()
}

/// The moments of a loss.
struct Recorded {
    cut: Moment,
    noticed: Moment,
    term: Moment,
    last_heartbeat: Moment,
    gone: Moment,
    lease_end: Moment,
    next_grant: Moment,
}

fn record() -> Recorded {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&place.path().join("data"), &[]);
    let proxy = Proxy::start(server.address()).unwrap();
    let client = server.client();

    let mut run = start(proxy.addr(), place.path());
    let (noticed, gone) = (noticed(&mut run), gone(&mut run));
    let (ticks, term) = (place.path().join("ticks"), place.path().join("term"));
    eventually("the command runs", || !readings(&ticks).is_empty());
    let token = client.inspect("job").unwrap()["fencing_token"].as_u64().unwrap();
    let next = next_grant(server.client());
    eventually("somebody waits", || client.waiters("job") == 1);

    proxy.cut();
    let cut = now();
    eventually("the end begins", || !readings(&term).is_empty());
    // The server's own view. No renewal has come through since long ago, so it does not change.
    let asked = now();
    let info = client.inspect("job").expect("TERM comes before the lease ends");
    assert_eq!(info["fencing_token"], token);
    let lease_end = asked.after(Duration::from_millis(info["expires_in_ms"].as_u64().unwrap()));

    eventually("all of it ends", || gone.is_finished());
    let gone = gone.join().unwrap();
    eventually("the next is granted it", || next.is_finished());
    let (next_grant, next_token) = next.join().unwrap();
    assert!(next_token > token);
    let mut status = None;
    eventually("dlock ends", || {
        status = run.0.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(79), "lost");
    let heartbeats = readings(&ticks);
    assert!(heartbeats.is_sorted());
    Recorded {
        cut,
        noticed: noticed.join().unwrap().expect("dlock says so"),
        term: readings(&term)[0],
        last_heartbeat: *heartbeats.last().unwrap(),
        gone,
        lease_end,
        next_grant,
    }
}

#[test]
fn a_loss_runs_in_order_from_the_cut_to_the_next_grant() {
    let seen = record();
    // dlock's word and the supervisor's TERM leave two processes at once: either may be seen first.
    assert!(seen.cut < seen.noticed && seen.noticed < seen.last_heartbeat);
    assert!(seen.cut < seen.term);
    assert!(seen.term < seen.last_heartbeat, "it was deaf");
    assert!(seen.last_heartbeat < seen.gone);
    assert!(seen.gone < seen.lease_end, "dead before the lease can end");
    assert!(seen.lease_end <= seen.next_grant);

    let events = page::events(&seen);
    if std::env::var_os("TEST_DLOCK_BLESS").is_some() {
        assert!(seen.noticed <= seen.term, "seen in another order than it happened: run it again");
        page::write(&events);
    }
    assert!(
        page::tells_of(&events),
        "{} does not tell of what is recorded, in this order; rewrite it with\n\
         TEST_DLOCK_BLESS=1 cargo test -p dlock-e2e --test timeline",
        page::PATH
    );
}
