//! A worker: takes the lock of the batch, pays what is unpaid, and begins anew if it finds out that
//! it was too late.

use std::{io, path::Path, sync::Arc, time::Duration};

use dlock::{
    LockGuard, Locks, OsEntropy, Service, ServiceConfig, SystemClock,
    wiring::{self, EmbeddedConfig},
};
use dlock_fence::postgres::FenceError;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::{
    Failed,
    rail::{BATCH, Payment, Rail},
    report::{ABOUT_TO_PAY, Event, TAKES, money, say},
};

/// The lease: renewed as long as the worker runs, and over soon after it stopped.
const TTL: Duration = Duration::from_secs(2);

/// A wait that no run comes to the end of.
const PATIENCE: Duration = Duration::from_secs(300);

/// How it ended under one grant.
enum Ended {
    /// Nothing is left to pay.
    Done,
    /// The lock was lost.
    Lost,
}

/// One worker, from its arguments: its name, the schema, the folder of the locks, `guarded` or not,
/// and a payment before which it waits for a line on standard input.
pub(crate) async fn run(role: &[&str]) -> Result<(), Failed> {
    // Also when it is stopped: whoever started it may be gone by then.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let [name, schema, folder, guarded, stop_before] = role else {
        return Err("worker NAME SCHEMA FOLDER guarded|unguarded PAYMENT|-".into());
    };
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let config = EmbeddedConfig::at(Path::new(folder));
    let store = wiring::embedded(config, clock.clone(), entropy.clone())?;
    let service = Service::new(store, clock.clone(), entropy.clone(), ServiceConfig::default());
    let locks = Locks::builder(service.clone(), clock, entropy).owner(name).ttl(TTL).build()?;
    let mut worker = Worker {
        rail: Rail::open(schema, *guarded == "guarded").await?,
        stop_before: stop_before.parse().ok(),
    };
    loop {
        let lock = locks.lock(BATCH).wait(PATIENCE).acquire().await?;
        let ended = worker.work(&lock).await?;
        // Whether it was still there is known by now.
        drop(lock.release().await);
        if let Ended::Done = ended {
            break;
        }
    }
    locks.settled().await;
    service.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

struct Worker {
    rail: Rail,
    stop_before: Option<i64>,
}

impl Worker {
    /// Pays under one grant.
    async fn work(&mut self, lock: &LockGuard) -> Result<Ended, Failed> {
        let token = lock.token();
        let tell = |payment: Option<&Payment>, what: &str| {
            let event = Event::new(token.get(), payment.map(|payment| payment.id), what);
            say(&mut io::stdout(), &event.to_string());
        };
        tell(None, TAKES);
        match self.rail.show(token).await {
            Ok(true) => tell(None, "shows its token to the rail, then reads what is unpaid"),
            Ok(false) => {}
            Err(FenceError::Stale(stale)) => {
                tell(None, &format!("shows its token: REFUSED, {stale}"));
                return Ok(Ended::Lost);
            }
            Err(error) => return Err(error.into()),
        }
        let unpaid = self.rail.unpaid().await?;
        for payment in &unpaid {
            if !lock.is_held() {
                tell(None, "sees that its lock is lost");
                return Ok(Ended::Lost);
            }
            // Nobody can look at the lock and pay in one step, and here time may pass.
            if self.stop_before == Some(payment.id) {
                self.stop_before = None;
                tell(Some(payment), ABOUT_TO_PAY);
                io::stdin().read_line(&mut String::new())?;
            }
            let paying = format!("pays {} to {}", money(payment.cents), payment.payee);
            match self.rail.pay(payment, token).await {
                Ok(()) => tell(Some(payment), &format!("{paying}: accepted")),
                Err(FenceError::Stale(stale)) => {
                    tell(Some(payment), &format!("{paying}: REFUSED, {stale}"));
                    return Ok(Ended::Lost);
                }
                Err(error) => return Err(error.into()),
            }
        }
        tell(None, "has nothing left to pay");
        Ok(Ended::Done)
    }
}
