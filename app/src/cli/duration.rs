//! Waits as people write them.

use std::time::Duration;

use dlock_ports::AcquireRequest;

use crate::config;

/// Reads how long to wait for a lock.
pub(crate) fn wait(text: &str) -> Result<Duration, String> {
    let wait = config::duration(text)?;
    if wait > AcquireRequest::MAX_WAIT {
        return Err("must be at most 1h".into());
    }
    Ok(wait)
}
