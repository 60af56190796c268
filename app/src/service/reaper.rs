//! Clearing ended leases away, now and then. Nothing depends on it: whoever meets an ended lease
//! ends it. It keeps the store small, and this server's count of what it holds.

use std::sync::Arc;

use super::core::Core;

/// Removed in one call at the most, so that one call stays short.
const BATCH: u32 = 500;

pub(crate) fn start(core: &Arc<Core>) {
    let task = Arc::clone(core);
    core.spawn(async move {
        loop {
            // Several servers on one store should not all come at the same moment.
            let interval = task.config.reap_interval;
            let jitter = interval.mul_f64(0.2 * unit(task.entropy.jitter()));
            let at = task.clock.now().after(interval.mul_f64(0.9) + jitter);
            tokio::select! {
                () = task.stopping.cancelled() => return,
                () = task.clock.sleep_until(at) => {}
            }
            task.tally.sweep(task.clock.now());
            while !task.stopping.is_cancelled() {
                match task.backend.locks.reap_expired(BATCH, task.budget()).await {
                    Ok(BATCH) => {}
                    Ok(_) => break,
                    Err(error) => {
                        tracing::debug!(%error, "ended leases could not be cleared away");
                        break;
                    }
                }
            }
        }
    });
}

/// Random bits as a number from 0 to 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact, and jitter needs fewer")]
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}
