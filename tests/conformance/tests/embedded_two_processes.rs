//! Two processes on one embedded file: what one is answered holds for the other, also when one of
//! them is killed. On the system's clock.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::{collections::HashSet, path::Path, process::Stdio, sync::Arc, time::Duration};

use dlock::{OsEntropy, SystemClock};
use dlock_conformance::{
    kit::{
        Caller, assert_invalid, attempt, bounded, granted, held, key, long, millis, of, private,
        private_for, token,
    },
    shared_file,
};
use dlock_domain::{FencingToken, LockHandle, SessionId};
use dlock_embedded::{EmbeddedConfig, EmbeddedStore};
use dlock_ports::{Attempt, WaitEnd};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinSet,
};

/// The other process; killed when dropped.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    async fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_conformance-peer"))
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut peer = Self { child, input, output };
        assert_eq!(peer.line().await, "ready");
        peer
    }

    async fn say(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        self.output.next_line().await.unwrap().expect("the peer lives and answers")
    }

    async fn ask(&mut self, line: &str) -> String {
        self.say(line).await;
        self.line().await
    }

    /// Takes a lock, which must be granted.
    async fn take(&mut self, name: &str, holder: &str) -> (FencingToken, SessionId) {
        let answer = self.ask(&format!("insert {name} {holder} {}", attempt())).await;
        let words: Vec<_> = answer.split(' ').collect();
        let ["granted", number, id] = words[..] else { panic!("expected a grant: {answer}") };
        (token(number.parse().unwrap()), SessionId::parse(id).unwrap())
    }

    /// SIGKILL, and every line that had been said by then.
    async fn kill(mut self) -> Vec<String> {
        self.child.kill().await.unwrap();
        let mut lines = Vec::new();
        while let Some(line) = self.output.next_line().await.unwrap() {
            lines.push(line);
        }
        lines
    }
}

/// This process's store and the other process, on a folder of their own.
struct Pair {
    caller: Caller,
    peer: Peer,
    folder: TempDir,
}

fn open(folder: &Path) -> Caller {
    let clock = Arc::new(SystemClock::new());
    let mut config = EmbeddedConfig::at(folder);
    config.busy_timeout = Duration::from_secs(60);
    let store = EmbeddedStore::open(config, clock.clone(), Arc::new(OsEntropy)).unwrap();
    Caller::on(store.backend(), clock, Duration::from_secs(60))
}

async fn pair() -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::start(&folder.path().join("store")).await;
    let caller = open(&folder.path().join("store"));
    Pair { caller, peer, folder }
}

/// A private holder that no case outlives, in the peer's words.
const LASTING: &str = "private:3600000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv01_one_holder_in_both_processes() {
    bounded("exclusion", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let (theirs, _) = peer.take("k", LASTING).await;
        caller.meet(&key("k"), &private("here")).await;
        assert_eq!(caller.read(&key("k")).await.map(|info| info.token), Some(theirs));
        assert_eq!(peer.ask(&format!("release k {theirs}")).await, "released true");
        let ours = caller.take(&key("k"), &private("here")).await;
        assert_eq!(peer.ask(&format!("insert k {LASTING} {}", attempt())).await, "held");
        assert_eq!(peer.ask("read k").await, format!("read {}", ours.token));
        // INV-06: key and token release, whoever presents them.
        assert_eq!(peer.ask(&format!("release k {theirs}")).await, "released false");
        assert_eq!(peer.ask(&format!("release k {}", ours.token)).await, "released true");
        assert!(!caller.release(&ours).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv04_tokens_rise_across_processes() {
    bounded("rising tokens", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let mut last = None;
        for _ in 0..20 {
            let ours = caller.take(&key("k"), &private("here")).await;
            assert!(Some(ours.token) > last);
            assert!(caller.release(&ours).await);
            let (theirs, _) = peer.take("k", LASTING).await;
            assert!(theirs > ours.token);
            assert_eq!(peer.ask(&format!("release k {theirs}")).await, "released true");
            last = Some(theirs);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv08_a_release_here_wakes_a_waiter_there() {
    bounded("wakes there", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        for _ in 0..5 {
            let ours = caller.take(&key("k"), &private("here")).await;
            assert_eq!(peer.ask(&format!("insert k {LASTING} {}", attempt())).await, "held");
            assert_eq!(peer.ask("wait").await, "waiting");
            assert!(caller.release(&ours).await);
            assert_eq!(peer.line().await, "woken Released");
        }
        // The gap: released between the attempt and the wait.
        let ours = caller.take(&key("k"), &private("here")).await;
        assert_eq!(peer.ask(&format!("insert k {LASTING} {}", attempt())).await, "held");
        assert!(caller.release(&ours).await);
        assert_eq!(peer.ask("wait").await, "waiting");
        assert_eq!(peer.line().await, "woken Released");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv08_a_release_there_wakes_a_waiter_here() {
    bounded("wakes here", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let waiter = caller.backend.waiter.clone().unwrap();
        for _ in 0..5 {
            let (theirs, _) = peer.take("k", LASTING).await;
            let since = caller.meet(&key("k"), &private("here")).await;
            let release = format!("release k {theirs}");
            let k = key("k");
            let (end, answer) =
                tokio::join!(waiter.await_release(&k, &since, caller.by()), peer.ask(&release),);
            assert_eq!((end, answer.as_str()), (WaitEnd::Released, "released true"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv01_both_insert_one_key_at_once() {
    bounded("a race", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let mut last = None;
        for _ in 0..10 {
            peer.say("race k 16").await;
            let mut shots = JoinSet::new();
            for _ in 0..16 {
                let caller = caller.clone();
                shots.spawn(async move {
                    caller.insert(&key("k"), &private("here"), attempt()).await.unwrap()
                });
            }
            let mut tokens = Vec::new();
            for answer in shots.join_all().await {
                if let Attempt::Granted(handle) = answer {
                    tokens.push(handle.token);
                }
            }
            let theirs = peer.line().await;
            let mut words = theirs.split(' ').skip(2);
            tokens.extend(words.by_ref().map(|word| token(word.parse().unwrap())));
            assert_eq!(tokens.len(), 1, "INV-01, here and there: {theirs}");
            assert!(Some(tokens[0]) > last, "INV-04");
            last = Some(tokens[0]);
            assert!(caller.release_token(&key("k"), tokens[0]).await);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_under_the_lock_loses_no_update() {
    bounded("counting", async {
        let Pair { caller, mut peer, folder } = pair().await;
        let file = folder.path().join("number");
        let times = 60;
        peer.say(&format!("count k {} {times}", file.display())).await;
        let ours = shared_file::count_up(&caller, &key("k"), &file, times).await;
        let answer = peer.line().await;
        let theirs = answer.strip_prefix("counted ").unwrap().split(' ');
        let theirs: Vec<_> = theirs.map(|word| token(word.parse().unwrap())).collect();
        assert_eq!(shared_file::read(&file), u64::from(2 * times));
        let all: HashSet<_> = ours.iter().chain(&theirs).collect();
        assert_eq!(all.len(), ours.len() + theirs.len(), "no token twice");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c20_an_attempt_is_found_by_another_process() {
    bounded("c20", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let session = caller.open("worker", long()).await;
        let named = attempt();
        let line = format!("insert k {} {named}", session.id.expose());
        let first = peer.ask(&line).await;
        // The peer dies before its caller asks again.
        peer.kill().await;
        let found = caller.take_as(&key("k"), &of(&session), named).await;
        assert_eq!(first, format!("granted {} {}", found.token, session.id.expose()));
        assert!(caller.release(&found).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inv09_an_attempt_settled_here_is_refused_there() {
    bounded("forget", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let session = caller.open("peer", long()).await;
        for (holder, word) in
            [(of(&session), session.id.expose()), (private("peer"), LASTING.to_owned())]
        {
            let named = attempt();
            caller.take_as(&key("k"), &holder, named).await;
            assert_eq!(peer.ask(&format!("forget k {word} {named}")).await, "forgot true");
            assert_invalid(caller.insert(&key("k"), &holder, named).await, "attempt_id");
            let late = attempt();
            assert!(!caller.forget(&key("k"), &holder, late).await);
            let answer = peer.ask(&format!("insert k {word} {late}")).await;
            assert_eq!(answer, "error invalid-argument");
            assert_eq!(peer.ask("read k").await, "read -");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c24_one_owner_in_two_processes_is_two_holders() {
    bounded("c24", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let ours = caller.take(&key("k"), &private("peer")).await;
        assert_eq!(peer.ask(&format!("insert k {LASTING} {}", attempt())).await, "held");
        let answer = peer.ask("open peer 3600000").await;
        let theirs = answer.strip_prefix("session ").unwrap().to_owned();
        assert_eq!(peer.ask(&format!("insert k {theirs} {}", attempt())).await, "held");
        assert_eq!(peer.ask(&format!("close {theirs}")).await, "closed true");
        assert!(caller.extend(&ours).await.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_closed_there_holds_nothing_here() {
    bounded("close", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let session = caller.open("worker", long()).await;
        let handle = caller.take(&key("k"), &of(&session)).await;
        let closed = peer.ask(&format!("close {}", session.id.expose())).await;
        assert_eq!(closed, "closed true");
        assert!(caller.keep(&session.id, &[&handle]).await.is_none());
        assert_eq!(caller.extend(&handle).await, None);
        peer.take("k", LASTING).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c22_a_stale_holder_in_another_process() {
    bounded("c22", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        // Nobody keeps it: its lease of a second ends, and wakes who waits for that.
        let (stale, _) = peer.take("k", "private:1000").await;
        let first = caller.insert(&key("k"), &private("here"), attempt()).await.unwrap();
        if let Attempt::Held(since) = first {
            let waiter = caller.backend.waiter.clone().unwrap();
            let end = waiter.await_release(&key("k"), &since, caller.by()).await;
            assert_eq!(end, WaitEnd::Released);
        }
        let live: LockHandle = match caller.read(&key("k")).await {
            None => caller.take(&key("k"), &private("here")).await,
            Some(_) => panic!("the lease has ended"),
        };
        assert!(live.token > stale);
        assert_eq!(peer.ask(&format!("release k {stale}")).await, "released false");
        assert_eq!(peer.ask(&format!("extend k {stale}")).await, "extended false");
        assert!(caller.extend(&live).await.is_some());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_9_in_mid_work_loses_nothing_that_was_answered() {
    bounded("kill -9", async {
        for lines_before_the_kill in [1, 10, 57] {
            let Pair { caller, mut peer, folder } = pair().await;
            let session = caller.open("worker", long()).await;
            peer.say(&format!("hammer {}", session.id.expose())).await;
            let mut said = Vec::new();
            for _ in 0..lines_before_the_kill {
                said.push(peer.line().await);
            }
            said.extend(peer.kill().await);

            // Through the handle that was open all the while, and through a fresh one.
            for caller in [caller, open(&folder.path().join("store"))] {
                let mut highest = None;
                let mut live = Vec::new();
                for line in &said {
                    let words: Vec<_> = line.split(' ').collect();
                    // A last line that was cut short was not said.
                    let [what, name, number] = words[..] else { continue };
                    let Ok(number) = number.parse() else { continue };
                    highest = highest.max(Some(token(number)));
                    if what == "granted" {
                        live.push((name.to_owned(), token(number)));
                    } else {
                        live.retain(|(held, _)| held != name);
                        assert_eq!(caller.read(&key(name)).await, None, "{line}");
                    }
                }
                // The last one may have been released without a chance to say so.
                let unsure = live.pop_if(|(name, _)| name.starts_with("passed"));
                for (name, number) in &live {
                    let seen = caller.read(&key(name)).await.map(|info| info.token);
                    assert_eq!(seen, Some(*number), "{name} was granted");
                }
                let next = caller.take(&key("next"), &private("next")).await;
                assert!(Some(next.token) > highest, "INV-04 across kill -9");
                assert!(caller.release(&next).await);
                if let Some((name, number)) = unsure {
                    let seen = caller.read(&key(&name)).await.map(|info| info.token);
                    assert!(seen.is_none_or(|seen| seen == number));
                }
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_holders_lease_ends_and_wakes_who_waits() {
    bounded("a killed holder", async {
        let Pair { caller, mut peer, folder: _folder } = pair().await;
        let ttl = millis(1_000);
        let (theirs, _) = peer.take("k", "private:1000").await;
        let shot = caller.insert(&key("k"), &private_for("here", ttl), attempt()).await;
        peer.kill().await;
        if let Ok(Attempt::Held(since)) = shot {
            let waiter = caller.backend.waiter.clone().unwrap();
            let end = waiter.await_release(&key("k"), &since, caller.by()).await;
            assert_eq!(end, WaitEnd::Released);
        } else {
            // The machine was so slow that the lease had ended before the shot.
            assert!(granted(shot).token > theirs);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_make_one_fresh_store_at_once() {
    bounded("a fresh store", async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut starts = JoinSet::new();
        for _ in 0..6 {
            let path = path.clone();
            starts.spawn(async move { Peer::start(&path).await });
        }
        let mut peers = starts.join_all().await;
        let (first, _) = peers[0].take("k", LASTING).await;
        for peer in &mut peers {
            assert_eq!(peer.ask("read k").await, format!("read {first}"));
        }
        held(open(&path).insert(&key("k"), &private("here"), attempt()).await);
    })
    .await;
}
