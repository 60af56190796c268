//! When a request arrived.

use core::convert::Infallible;

use axum::{extract::FromRequestParts, http::request::Parts};
use dlock_domain::Moment;

use crate::app::App;

/// The moment at which a request was received, from which `valid_ms` counts (C3, INV-03): before
/// its body was read and before any wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received(pub(crate) Moment);

impl Received {
    /// How long a holder may believe in what ends at `deadline`, counted from here: whole
    /// milliseconds rounded down, 0 if it has passed.
    pub(crate) fn valid_ms(self, deadline: Moment) -> u64 {
        u64::try_from(deadline.since(self.0).as_millis()).unwrap_or(u64::MAX)
    }
}

impl FromRequestParts<App> for Received {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        // The envelope always stores it. Were it missing, a later moment would only make
        // `valid_ms` smaller, which is the safe side.
        let stored = parts.extensions.get::<Self>().copied();
        Ok(stored.unwrap_or_else(|| Self(app.clock().now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv03_valid_ms_rounds_down_and_never_below_zero() {
        let received = Received(Moment::from_nanos(1_000_000));
        assert_eq!(received.valid_ms(Moment::from_nanos(2_999_999)), 1);
        assert_eq!(received.valid_ms(Moment::from_nanos(1_000_000)), 0);
        assert_eq!(received.valid_ms(Moment::from_nanos(0)), 0);
        assert_eq!(received.valid_ms(Moment::NEVER), (u64::MAX - 1_000_000) / 1_000_000);
    }
}
