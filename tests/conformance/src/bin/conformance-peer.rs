//! The other process: an embedded store on the folder that the first argument names, driven by
//! lines on standard input, answering by lines on standard output. Ends with its input.
//!
//! | line | answers |
//! | --- | --- |
//! | `open OWNER TTL_MS` | `session ID` |
//! | `close ID` | `closed BOOL` |
//! | `insert NAME HOLDER ATTEMPT`, HOLDER an id or `private:TTL_MS` | `granted TOKEN ID`, `held`, `error KIND` |
//! | `race NAME COUNT` | `grants COUNT TOKEN…`, of so many inserts at once |
//! | `release NAME TOKEN`, `extend NAME TOKEN` | `released BOOL`, `extended BOOL` |
//! | `read NAME` | `read TOKEN`, `read -` |
//! | `forget NAME HOLDER ATTEMPT` | `forgot BOOL` |
//! | `wait` | `waiting`, later `woken END`: for the lock that the last insert met |
//! | `count NAME FILE TIMES` | `counted TOKEN…` |
//! | `hammer ID` | `granted NAME TOKEN` and `released NAME TOKEN` as it goes, without end |

use std::{
    io::{self, BufRead, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use dlock::{OsEntropy, SystemClock};
use dlock_conformance::{
    kit::{Caller, attempt, key, millis, private, private_for, token},
    shared_file,
};
use dlock_domain::{AttemptId, LockKey, Result, SessionId};
use dlock_embedded::{EmbeddedConfig, EmbeddedStore};
use dlock_ports::{Attempt, Holder, Observed};
use tokio::{runtime::Runtime, task::JoinSet};

type Failure = Box<dyn std::error::Error + Send + Sync>;

struct Peer {
    caller: Caller,
    met: Option<(LockKey, Observed)>,
}

fn main() -> std::result::Result<(), Failure> {
    let folder = std::env::args_os().nth(1).ok_or("usage: conformance-peer FOLDER")?;
    let clock = Arc::new(SystemClock::new());
    let mut config = EmbeddedConfig::at(folder);
    config.busy_timeout = Duration::from_secs(60);
    let store = EmbeddedStore::open(config, clock.clone(), Arc::new(OsEntropy))?;
    let caller = Caller::on(store.backend(), clock, Duration::from_secs(60));
    let mut peer = Peer { caller, met: None };
    let runtime = Runtime::new()?;
    say("ready")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<_> = line.split(' ').collect();
        let answer = match runtime.block_on(peer.answer(&words))? {
            Ok(answer) => answer,
            Err(error) => format!("error {}", error.kind().name()),
        };
        say(&answer)?;
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

impl Peer {
    async fn answer(&mut self, words: &[&str]) -> std::result::Result<Result<String>, Failure> {
        let caller = self.caller.clone();
        Ok(Ok(match *words {
            ["open", owner, ttl] => {
                let session = caller.open(owner, millis(ttl.parse()?)).await;
                format!("session {}", session.id.expose())
            }
            ["close", id] => format!("closed {}", caller.close(&SessionId::parse(id)?).await),
            ["insert", name, holder, attempt] => {
                let holder = self.holder(holder).await?;
                match caller.insert(&key(name), &holder, AttemptId::parse(attempt)?).await {
                    Ok(Attempt::Granted(handle)) => {
                        format!("granted {} {}", handle.token, handle.session.expose())
                    }
                    Ok(Attempt::Held(observed)) => {
                        self.met = Some((key(name), observed));
                        "held".to_owned()
                    }
                    Err(error) => return Ok(Err(error)),
                }
            }
            ["race", name, count] => race(&caller, name, count.parse()?).await,
            ["release", name, number] => {
                let released = caller.release_token(&key(name), token(number.parse()?)).await;
                format!("released {released}")
            }
            ["extend", name, number] => {
                let extended = caller.extend_token(&key(name), token(number.parse()?)).await;
                format!("extended {}", extended.is_some())
            }
            ["read", name] => match caller.read(&key(name)).await {
                Some(info) => format!("read {}", info.token),
                None => "read -".to_owned(),
            },
            ["forget", name, holder, attempt] => {
                let holder = self.holder(holder).await?;
                let forgot = caller.forget(&key(name), &holder, AttemptId::parse(attempt)?).await;
                format!("forgot {forgot}")
            }
            ["wait"] => self.wait().await?,
            ["count", name, file, times] => {
                let times = times.parse()?;
                let key = key(name);
                let tokens = shared_file::count_up(&caller, &key, Path::new(file), times).await;
                format!("counted {}", join(tokens))
            }
            ["hammer", id] => self.hammer(id).await?,
            _ => return Err(format!("not understood: {words:?}").into()),
        }))
    }

    async fn holder(&self, word: &str) -> std::result::Result<Holder, Failure> {
        if let Some(ttl) = word.strip_prefix("private:") {
            return Ok(private_for("peer", millis(ttl.parse()?)));
        }
        let looked = self.caller.look(&SessionId::parse(word)?).await;
        let (session, _) = looked.ok_or("the session is gone")?;
        Ok(Holder::Session(session))
    }

    async fn wait(&mut self) -> std::result::Result<String, Failure> {
        let (key, since) = self.met.take().ok_or("nothing was met")?;
        let waiter = self.caller.backend.waiter.clone().ok_or("no waiter")?;
        let (waiting, by) = (Arc::clone(&waiter), self.caller.by());
        let wait = {
            let key = key.clone();
            tokio::spawn(async move { waiting.await_release(&key, &since, by).await })
        };
        while waiter.waiters(&key) == 0 && !wait.is_finished() {
            tokio::task::yield_now().await;
        }
        say("waiting")?;
        Ok(format!("woken {:?}", wait.await?))
    }

    /// Takes two locks and releases one, over and over; says of each step only what was answered.
    async fn hammer(&self, id: &str) -> std::result::Result<String, Failure> {
        let holder = self.holder(id).await?;
        for round in 0_u64.. {
            for kind in ["kept", "passed"] {
                let name = format!("{kind}-{round}");
                let handle = self.caller.take(&key(&name), &holder).await;
                say(&format!("granted {name} {}", handle.token))?;
                if kind == "passed" && self.caller.release(&handle).await {
                    say(&format!("released {name} {}", handle.token))?;
                }
            }
        }
        Ok("done".to_owned())
    }
}

async fn race(caller: &Caller, name: &str, count: u32) -> String {
    let mut shots = JoinSet::new();
    for _ in 0..count {
        let (caller, key) = (caller.clone(), key(name));
        shots.spawn(async move { caller.insert(&key, &private("racer"), attempt()).await });
    }
    let mut grants = Vec::new();
    for answer in shots.join_all().await {
        if let Ok(Attempt::Granted(handle)) = answer {
            grants.push(handle.token);
        }
    }
    format!("grants {} {}", grants.len(), join(grants)).trim_end().to_owned()
}

fn join(tokens: Vec<dlock_domain::FencingToken>) -> String {
    tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
