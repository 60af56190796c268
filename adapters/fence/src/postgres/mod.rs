//! The fence guard for what lies in PostgreSQL (C1, INV-05): a table of marks and one statement in
//! the caller's own transaction, on the caller's own connection.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`fence`](Fence) | the guard |
//! | [`error`](FenceError) | a refusal with both tokens, or the database's own error |
//! | `statement` | the one statement |
//! | [`schema`] | the SQL that makes the table, and functions that do the same from any language |
//!
//! What holds: a transaction in which [`Fence::pass`] has returned `Ok` keeps every other writer of
//! that resource waiting until it ends. So transactions that write behind it commit in the order of
//! their tokens, at every isolation level. If it rolls back, its mark goes back with what it wrote.
//!
//! # Example
//! ```no_run
//! use diesel_async::{AsyncConnection, AsyncPgConnection, SimpleAsyncConnection};
//! use dlock_fence::{FencingToken, Resource, postgres::{Fence, FenceError}};
//!
//! # async fn pay(connection: &mut AsyncPgConnection) -> Result<(), Box<dyn std::error::Error>> {
//! let fence = Fence::in_schema("app")?;
//! let batch = Resource::new("payments/batch-17")?;
//! let token = FencingToken::from_user(42)?; // of the lock that this process holds
//! let paid = connection
//!     .transaction(async |transaction| {
//!         fence.pass(transaction, &batch, token).await?;
//!         transaction.batch_execute("INSERT INTO transfers VALUES ('nina', 4200)").await?;
//!         Ok::<_, FenceError>(())
//!     })
//!     .await;
//! match paid {
//!     Ok(()) => {}
//!     // Rolled back by `transaction`: nothing was paid.
//!     Err(FenceError::Stale(stale)) => return Err(stale.into()),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(()) }
//! ```

mod error;
mod fence;
mod statement;

pub use error::FenceError;
pub use fence::Fence;

/// The SQL that makes the table `dlock_fence` and its functions in the first schema of the search
/// path: one of the application's own migrations, tested on PostgreSQL 15 and 17. Running it again does
/// nothing; at the same time from two places it may fail in one of them.
///
/// For other languages it brings `dlock_fence_pass(resource, token)`, which raises SQLSTATE `LKF01`
/// with both tokens, and `dlock_fence_try_pass(resource, token)`, which says whether. Both follow
/// the same statement as [`Fence::pass`], so writers of all languages can share a resource. Neither
/// can tell whether it stands in the transaction that writes: that is up to the caller. So is naming
/// their schema in every call, as in `app.dlock_fence_pass('payments/batch-17', 42)`: without it a
/// function of the same name that fits better is taken from anywhere on the search path.
#[must_use]
pub const fn schema() -> &'static str {
    include_str!("../../sql/postgres.sql")
}
