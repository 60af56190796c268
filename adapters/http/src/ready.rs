//! Whether this server can do its work.

use async_trait::async_trait;
use dlock_domain::Result;

/// Asks whether the store answers.
#[async_trait]
pub trait ReadinessProbe: Send + Sync {
    /// Runs a real transaction of the store (C3, `/readyz`); the caller bounds it in time.
    ///
    /// # Errors
    /// Whatever the store answered; any error means not ready.
    ///
    /// # Cancellation
    /// Leaves nothing.
    async fn check(&self) -> Result<()>;
}
