//! Embedding the service behind a transport of one's own: lines of text over a Unix socket.
//!
//! A connection is a session: its locks live as long as it does, and end when it hangs up. So a
//! session's id, which is a secret, never travels.
//!
//! | line | answer |
//! | --- | --- |
//! | `hello OWNER TTL_MS`, first of all | `welcome VALID_MS` |
//! | `acquire NAME WAIT_MS` | `granted TOKEN VALID_MS`, or `held OWNER` |
//! | `keep NAME TOKEN` | `kept VALID_MS`, or `lost` |
//! | `release NAME TOKEN` | `released true`, or `released false` |
//!
//! Whatever fails is `error KIND: …`. `VALID_MS` counts from before the line was sent. Left out, and
//! needed where strangers may connect: bounds on lines and on connections.
//!
//! `cargo run -p dlock --example own_transport`

use std::{error::Error, sync::Arc, time::Duration};

use dlock::{
    AcquireRequest, Acquired, Clock, FencingToken, LockError, LockKey, LockName, LockService,
    Moment, Namespace, OsEntropy, OwnerId, Result, Service, ServiceConfig, Session, SessionRef,
    SystemClock, Ttl, wiring,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf, unix::OwnedWriteHalf},
};

/// One connection, at the server.
struct Peer {
    locks: Arc<dyn LockService>,
    clock: Arc<dyn Clock>,
    session: Option<Session>,
}

impl Peer {
    /// Serves lines until the other side hangs up, then frees what it held.
    async fn serve(mut self, stream: UnixStream) {
        // A line that breaks is a hang-up too.
        drop(self.lines(stream).await);
        if let Some(session) = &self.session {
            // If that fails, its lease ends it.
            drop(self.locks.close_session(&session.id).await);
        }
    }

    async fn lines(&mut self, stream: UnixStream) -> std::io::Result<()> {
        let (read, mut write) = stream.into_split();
        let mut lines = BufReader::new(read).lines();
        while let Some(line) = lines.next_line().await? {
            // Before the service is asked: what is answered counts from then on (INV-03).
            let received = self.clock.now();
            let answer = tokio::select! {
                answer = self.answer(&line, received) => answer,
                // Hung up, or talking out of turn: the call is dropped, and the service sees to it
                // that nothing stays held that nobody asked to keep (INV-09).
                _ = lines.next_line() => return Ok(()),
            };
            let text = answer.unwrap_or_else(|error| format!("error {error}"));
            write.write_all(format!("{text}\n").as_bytes()).await?;
        }
        Ok(())
    }

    /// Keeps a session while its client waits and cannot speak: it is there, or it would have hung
    /// up. Ends only when that is over.
    async fn keep_waiting(&self, session: &Session) -> LockError {
        loop {
            let third = session.ttl.as_duration() / 3;
            self.clock.sleep_until(self.clock.now().after(third)).await;
            match self.locks.keep_session(&session.id, &[]).await {
                Err(error) if !error.is_transient() => return error,
                _ => {}
            }
        }
    }

    async fn answer(&mut self, line: &str, received: Moment) -> Result<String> {
        let valid = |deadline: Moment| deadline.since(received).as_millis();
        let words: Vec<&str> = line.split(' ').collect();
        if let (["hello", owner, ttl], None) = (&words[..], &self.session) {
            let (owner, ttl) = (OwnerId::new(owner)?, Ttl::from_millis(number(ttl)?)?);
            let session = self.locks.open_session(owner, ttl).await?;
            let answer = format!("welcome {}", valid(session.client_deadline));
            self.session = Some(session);
            return Ok(answer);
        }
        let session =
            self.session.as_ref().ok_or_else(|| LockError::invalid("line", "say hello"))?;
        match words[..] {
            ["acquire", name, wait] => {
                let request = AcquireRequest {
                    key: key(name)?,
                    session: SessionRef::Id(session.id),
                    attempt: None,
                    max_wait: Duration::from_millis(number(wait)?),
                };
                let acquired = tokio::select! {
                    biased;
                    acquired = self.locks.acquire(request) => acquired?,
                    gone = self.keep_waiting(session) => return Err(gone),
                };
                Ok(match acquired {
                    Acquired::Granted(lock) => {
                        format!("granted {} {}", lock.token, valid(lock.client_deadline))
                    }
                    Acquired::NotGranted { holder: Some(info) } => format!("held {}", info.owner),
                    Acquired::NotGranted { holder: None } => "held".into(),
                })
            }
            ["keep", name, token] => {
                let held = [(key(name)?, FencingToken::from_user(number(token)?)?)];
                let kept = self.locks.keep_session(&session.id, &held).await?;
                Ok(match kept.lost.is_empty() {
                    true => format!("kept {}", valid(kept.session.client_deadline)),
                    false => "lost".into(),
                })
            }
            ["release", name, token] => {
                let token = FencingToken::from_user(number(token)?)?;
                let released = self.locks.release(&key(name)?, token, &session.id).await?;
                Ok(format!("released {}", released.released))
            }
            _ => Err(LockError::invalid("line", "is none that is understood")),
        }
    }
}

fn key(name: &str) -> Result<LockKey> {
    Ok(LockKey::new(Namespace::default(), LockName::new(name)?))
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| LockError::invalid("number", "is not a whole number"))
}

/// The other side: says a line, hears a line.
struct Client(Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf);

impl Client {
    async fn hello(path: &std::path::Path, owner: &str) -> std::io::Result<Self> {
        let (read, write) = UnixStream::connect(path).await?.into_split();
        let mut client = Self(BufReader::new(read).lines(), write);
        let welcome = client.says(&format!("hello {owner} 10000")).await?;
        assert!(welcome.starts_with("welcome "), "{welcome}");
        Ok(client)
    }

    async fn says(&mut self, line: &str) -> std::io::Result<String> {
        self.1.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(self.0.next_line().await?.unwrap_or_default())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let backend = wiring::memory(clock.clone(), entropy.clone());
    let service = Service::new(backend, clock.clone(), entropy, ServiceConfig::default());
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("locks");
    let listener = UnixListener::bind(&path)?;
    let locks = service.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let peer = Peer { locks: locks.clone(), clock: clock.clone(), session: None };
            tokio::spawn(peer.serve(stream));
        }
    });

    let mut ada = Client::hello(&path, "ada").await?;
    let granted = ada.says("acquire report 0").await?;
    let words: Vec<&str> = granted.split(' ').collect();
    let ["granted", token, valid] = words[..] else { return Err(granted.into()) };
    assert!(valid.parse::<u64>()? <= 9_800, "the margin is off already");
    assert!(ada.says(&format!("keep report {token}")).await?.starts_with("kept "));

    let mut grace = Client::hello(&path, "grace").await?;
    assert_eq!(grace.says("acquire report 0").await?, "held ada");
    assert_eq!(
        grace.says(&format!("release report {token}")).await?.split(':').next(),
        Some("error denied")
    );
    assert!(grace.says("acquire report never").await?.starts_with("error invalid"));

    // One waits, the other hangs up: its locks end with it, and the next token is greater.
    let waits =
        tokio::spawn(
            async move { grace.says("acquire report 60000").await.map(|said| (grace, said)) },
        );
    drop(ada);
    let (mut grace, granted) = waits.await??;
    let next = granted.split(' ').nth(1).unwrap_or_default();
    assert!(granted.starts_with("granted ") && next.parse::<u64>()? > token.parse()?, "{granted}");
    assert_eq!(grace.says(&format!("release report {next}")).await?, "released true");
    assert_eq!(grace.says(&format!("release report {next}")).await?, "released false");

    drop(grace);
    assert!(service.shutdown(Duration::from_secs(5)).await);
    Ok(())
}
