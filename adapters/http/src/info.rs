//! A lock as others see it, on the wire.

use core::time::Duration;

use dlock_domain::{LockInfo, WallTime};
use serde::Serialize;
use utoipa::ToSchema;

use crate::spec::fields as wire;

/// `LockInfo` of C3: durations instead of times, since clocks differ, and never the session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LockInfo, description = "A live grant as others see it.")]
pub(crate) struct InfoBody {
    #[schema(value_type = wire::LockName)]
    name: String,
    #[schema(value_type = wire::Namespace)]
    namespace: String,
    #[schema(value_type = wire::Owner)]
    owner: String,
    #[schema(value_type = wire::FencingToken)]
    fencing_token: u64,
    held_for_ms: u64,
    expires_in_ms: u64,
    /// How many wait, as far as this server knows: advisory.
    waiter_count: u32,
}

impl InfoBody {
    /// What a lock looks like at this time.
    pub(crate) fn new(info: &LockInfo, now: WallTime) -> Self {
        Self {
            name: info.key.name().as_str().to_owned(),
            namespace: info.key.namespace().as_str().to_owned(),
            owner: info.owner.as_str().to_owned(),
            fencing_token: info.token.get(),
            held_for_ms: millis(now.since(info.acquired_at)),
            expires_in_ms: millis(info.server_expiry.since(now)),
            waiter_count: info.waiter_count,
        }
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
