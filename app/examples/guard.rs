//! A guarded counter: each write goes through with the token of whoever holds the lock, and late
//! ones are refused.
//!
//! `cargo run -p dlock --example guard`

use std::{error::Error, sync::Arc, time::Duration};

use dlock::{HighWaterMark, Locks, OsEntropy, Service, ServiceConfig, SystemClock, wiring};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let backend = wiring::memory(clock.clone(), entropy.clone());
    let service = Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
    let locks = Locks::builder(service, clock, entropy).owner("example").build()?;

    // What the lock protects; it remembers the highest token that it has seen.
    let mut guarded = HighWaterMark::default();

    // By hand: acquire, work while it is held, release.
    let ttl = Duration::from_secs(10);
    let lock = locks.lock("counter").ttl(ttl).wait(Duration::from_secs(5)).acquire().await?;
    let early = lock.token();
    guarded.accept(early)?;
    assert!(lock.is_held());
    lock.release().await?;

    // Or let the work be stopped in time. The value comes back only if the lock was held throughout.
    let late = locks.with_lock("counter", |token, _cancelled| async move { token }).await?;
    guarded.accept(late)?;

    // A write that was on its way since the first lock arrives now, and is refused.
    let refused = guarded.accept(early);
    assert!(refused.is_err());
    Ok(())
}
