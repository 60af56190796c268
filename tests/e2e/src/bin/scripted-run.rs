//! `dlock run` over a lock service that a test scripts through the environment, for what no real
//! store does on demand: losing a grant, never answering, failing, forgetting what it answered.
//!
//! `SCRIPT_ACQUIRE`, `SCRIPT_KEEP` and `SCRIPT_RELEASE` each name an answer below; without, all
//! goes well. Arguments: the lifetime in milliseconds, then the command.

use std::{ffi::OsString, process::ExitCode, sync::Arc, time::Duration};

use async_trait::async_trait;
use dlock::{
    AcquireRequest, Acquired, AttemptId, Clock, Current, ErrorKind, FencingToken, HeldGrant, Kept,
    ListRequest, LockError, LockHandle, LockInfo, LockKey, LockName, LockOutcome, LockService,
    Namespace, OsEntropy, OwnerId, Page, Raised, Released, Result, RevokeRequest, Session,
    SessionId, SessionRef, SystemClock, TokenFloor, Ttl,
    run::{Home, RunRequest, execute, supervisor},
};

struct Scripted {
    clock: SystemClock,
    owner: OwnerId,
    ttl: Ttl,
    token: FencingToken,
    tries: std::sync::atomic::AtomicU32,
}

fn script(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn unused<T>() -> Result<T> {
    Err(LockError::new(ErrorKind::Unsupported, "not part of the script"))
}

impl Scripted {
    fn session(&self) -> Session {
        Session {
            id: SessionId::from_bits(1),
            owner: self.owner.clone(),
            ttl: self.ttl,
            client_deadline: self.clock.now().holder_deadline(self.ttl, self.ttl),
        }
    }
}

#[async_trait]
impl LockService for Scripted {
    async fn open_session(&self, _: OwnerId, _: Ttl) -> Result<Session> {
        unused()
    }
    async fn keep_session(&self, _: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept> {
        let session = self.session();
        match script("SCRIPT_KEEP").as_str() {
            "hang" => std::future::pending().await,
            "fail" => Err(LockError::contention("scripted")),
            "expired" => Err(LockError::session_expired()),
            "revoked" => Ok(Kept { session, lost: held.to_vec() }),
            _ => Ok(Kept { session, lost: Vec::new() }),
        }
    }
    async fn look_session(&self, _: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        Ok((self.session(), Vec::new()))
    }
    async fn close_session(&self, _: &SessionId) -> Result<bool> {
        unused()
    }
    async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        self.acquire(request).await
    }
    async fn acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        match script("SCRIPT_ACQUIRE").as_str() {
            "fail" => Err(LockError::contention("scripted")),
            "denied" => Err(LockError::new(ErrorKind::Denied, "scripted")),
            "held" => Ok(Acquired::NotGranted { holder: None }),
            _ => {
                let session = self.session();
                Ok(Acquired::Granted(LockHandle {
                    key: request.key,
                    owner: session.owner,
                    session: session.id,
                    token: self.token,
                    ttl: session.ttl,
                    client_deadline: session.client_deadline,
                    server_expiry: self.clock.wall().after(session.ttl.as_duration()),
                }))
            }
        }
    }
    async fn renew(&self, _: &LockKey, _: FencingToken, _: &SessionId) -> Result<LockHandle> {
        unused()
    }
    async fn release(&self, _: &LockKey, _: FencingToken, _: &SessionId) -> Result<Released> {
        let first = self.tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        match script("SCRIPT_RELEASE").as_str() {
            "unknown-then-false" if first => Err(LockError::contention("cut").maybe_applied()),
            "refused-then-false" if first => Err(LockError::contention("refused")),
            "unknown-then-false" | "refused-then-false" | "false" => {
                Ok(Released { released: false, current: Current::None })
            }
            "fail" => Err(LockError::contention("scripted")),
            "hang" => std::future::pending().await,
            _ => Ok(Released { released: true, current: Current::None }),
        }
    }
    async fn forget(&self, _: &LockKey, _: &SessionRef, _: AttemptId) -> Result<Released> {
        unused()
    }
    async fn inspect(&self, _: &LockKey) -> Result<Option<LockInfo>> {
        unused()
    }
    async fn list(&self, _: ListRequest) -> Result<Page> {
        unused()
    }
    async fn revoke(&self, _: &LockKey, _: RevokeRequest) -> Result<LockOutcome> {
        unused()
    }
    async fn raise_floor(&self, _: &Namespace, _: TokenFloor) -> Result<Raised> {
        unused()
    }
}

fn main() -> std::result::Result<ExitCode, Box<dyn std::error::Error>> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let text = |index: usize| words.get(index).and_then(|word| word.to_str()).unwrap_or_default();
    if text(0) == "supervise" {
        // supervise --control-fd N -- COMMAND…
        return Ok(supervisor::main(text(2).parse()?, &words[4..]).into());
    }
    let clock = SystemClock::new();
    let ttl = Ttl::from_millis(text(0).parse()?)?;
    let owner = OwnerId::new("scripted")?;
    let request = RunRequest {
        key: LockKey::new(Namespace::default(), LockName::new("scripted")?),
        owner: owner.clone(),
        ttl,
        wait: Duration::ZERO,
        command: words.get(1..).unwrap_or_default().to_vec(),
        conflict_exit_code: 75,
        home: Home::Server("http://scripted".into()),
    };
    let token = FencingToken::from_user(1)?;
    let service = Scripted { clock, owner, ttl, token, tries: 0.into() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let code =
        runtime.block_on(execute(Arc::new(service), Arc::new(clock), Arc::new(OsEntropy), request));
    Ok(code.into())
}
