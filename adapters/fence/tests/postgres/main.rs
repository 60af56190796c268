//! The fence guard on a real PostgreSQL: transactions that race, at every isolation level, beside
//! the naive ways of doing it, which let stale writes through. Each on the old and the new version.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod hijacking;
mod isolation;
mod naive;
mod order;
mod plain_sql;
mod pooled;
mod racing;
mod refusing;
mod support;

/// One test of each version.
macro_rules! on_both {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn old_postgres() {
                super::$name(dlock_servers::PostgresVersion::Old).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn new_postgres() {
                super::$name(dlock_servers::PostgresVersion::New).await;
            }
        })*
    };
}
pub(crate) use on_both;
