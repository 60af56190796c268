//! Bringing one's own store: [`store`] implements two ports on `domain` and `ports` alone, and the
//! service, the guard and every transport work on it.
//!
//! `cargo run -p dlock --example own_store`

mod store;

use std::{error::Error, sync::Arc, time::Duration};

use dlock::{
    ErrorKind, HighWaterMark, ListRequest, LockKey, LockName, LockService, Locks, Namespace,
    OsEntropy, OwnerId, Reason, RevokeRequest, Service, ServiceConfig, SystemClock,
    guard::AcquireError,
};
use store::{OneMutex, Room};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let room = Room { locks: 10_000, sessions: 10_000, settled: 1_000 };
    let store = OneMutex::new(clock.clone(), entropy.clone(), room);
    let config = ServiceConfig::default();
    let service = Service::new(store.backend(), clock.clone(), entropy.clone(), config);
    let locks = Locks::builder(service.clone(), clock, entropy).owner("example").build()?;
    let mut guarded = HighWaterMark::default();

    // One holder at a time, and each with a greater token.
    let first = locks.lock("report").acquire().await?;
    guarded.accept(first.token())?;
    let refused = locks.lock("report").acquire().await;
    assert!(matches!(refused, Err(AcquireError::NotGranted { .. })));
    // Whoever waits is granted it after the release, though this store tells nobody: it is polled.
    let waiter = tokio::spawn(locks.lock("report").wait(Duration::from_secs(60)).acquire());
    let stale = first.token();
    first.release().await?;
    let second = waiter.await??;
    guarded.accept(second.token())?;
    assert!(guarded.accept(stale).is_err());

    // An operator breaks a lock: its holder's release finds it gone, and the next token is greater.
    let key = LockKey::new(Namespace::default(), LockName::new("report")?);
    let (actor, reason) = (OwnerId::new("operator")?, Reason::new("its host is gone")?);
    service.revoke(&key, RevokeRequest { actor, reason, expected: None }).await?;
    assert_eq!(store.revocations().len(), 1);
    let broken = second.token();
    assert!(second.release().await.is_err());
    let third = locks.with_lock("report", |token, _cancelled| async move { token }).await?;
    assert!(third > broken);

    // What it does not offer is said to be absent.
    let list =
        ListRequest { namespace: Namespace::default(), prefix: "".into(), after: None, limit: 10 };
    let absent = service.list(list).await.map(drop).map_err(|error| error.kind());
    assert_eq!(absent, Err(ErrorKind::Unsupported));

    assert!(service.shutdown(Duration::from_secs(5)).await);
    Ok(())
}
