//! The guard.

use std::sync::Arc;

use diesel::{pg::Pg, result::Error};
use diesel_async::{AsyncConnection, RunQueryDsl as _, TransactionManager as _};
use dlock_domain::{FencingToken, LockError, Result, StaleToken};

use super::{FenceError, statement::Show};
use crate::Resource;

/// The longest name that PostgreSQL keeps whole, in bytes.
const LONGEST_SCHEMA: usize = 63;

/// Guards what lies in a PostgreSQL database by the marks in its table `dlock_fence`, which
/// [`schema`](super::schema) makes. Holds no connection: it is told which at every call.
#[derive(Clone, Debug)]
pub struct Fence {
    schema: Arc<str>,
}

impl Fence {
    /// Marks in the schema of this name, in which nobody may create anything who is not trusted with
    /// the writes. There is no guard without a name: every search path begins with the tables that the
    /// session made for a while, and behind a pooler a session is shared with others.
    ///
    /// # Errors
    /// `InvalidArgument` naming `schema` unless it has 1 to 63 bytes and no NUL.
    pub fn in_schema(name: &str) -> Result<Self> {
        if name.is_empty() || name.len() > LONGEST_SCHEMA || name.contains('\0') {
            return Err(LockError::invalid("schema", "must have 1 to 63 bytes and no NUL"));
        }
        Ok(Self { schema: name.into() })
    }

    /// Lets the current transaction write to the resource if the token is not lower than any that
    /// was let through before, and remembers it (INV-05). Equal tokens pass: one holder may write
    /// many times.
    ///
    /// To be called in the transaction that writes, before it reads or writes anything: a new
    /// holder's token is then at the resource before the holder reads, and no late write of its
    /// predecessor can land in between (trap 40). Afterwards other writers of the resource wait
    /// until this transaction ends. If it is rolled back, or only to a savepoint before the call,
    /// the mark goes back with it, and with the mark the leave to write.
    ///
    /// Waits while another transaction that has passed, or was refused, is open; then the newest
    /// mark counts. A writer that is stopped in the middle of its transaction keeps everybody
    /// waiting, its successor too, though nothing wrong is written: how long is up to the caller's
    /// `lock_timeout`, and to `idle_in_transaction_session_timeout`, which ends such a writer.
    ///
    /// A transaction that passes several resources does so in one order everywhere, or two of them
    /// can wait for each other (40P01).
    ///
    /// It is one statement, and keeps nothing on the connection beyond the transaction. diesel-async's
    /// own connection does (trap 31): it prepares statements by name, the first ones while it connects,
    /// so it needs a pooler that knows them (PgBouncer from 1.21 on, with `max_prepared_statements`) or
    /// that keeps a session together. Behind others let another driver call the
    /// [SQL function](super::schema).
    ///
    /// # Errors
    /// [`FenceError::Stale`] with both tokens, whereupon the transaction still stands and should be
    /// rolled back; [`FenceError::NoTransaction`] if none was begun through the driver;
    /// [`FenceError::Database`] for everything else, 40001 included. Nothing but `Ok` is leave to
    /// write.
    ///
    /// # Cancellation
    /// Dropped half way, the statement may or may not have run; the transaction has to be rolled
    /// back, which the driver does not do by itself.
    pub async fn pass<C>(
        &self,
        connection: &mut C,
        resource: &Resource,
        token: FencingToken,
    ) -> std::result::Result<(), FenceError>
    where
        C: AsyncConnection<Backend = Pg>,
    {
        let status = C::TransactionManager::transaction_manager_status_mut(connection);
        if status.transaction_depth()?.is_none() {
            return Err(FenceError::NoTransaction);
        }
        let number = token.get().try_into().map_err(unreadable)?;
        let show = Show { schema: &self.schema, resource: resource.as_str(), token: number };
        let mark: i64 = show.get_result(connection).await?;
        let mark = u64::try_from(mark).map_err(unreadable)?;
        let highest = FencingToken::from_store(mark).map_err(unreadable)?;
        if highest == token { Ok(()) } else { Err(StaleToken { presented: token, highest }.into()) }
    }
}

/// A number that is no token, which the table's own checks rule out.
fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::DeserializationError(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_are_none_are_refused_by_field() {
        for bad in ["", "a\0b", &"s".repeat(64)] {
            assert_eq!(Fence::in_schema(bad).unwrap_err().field(), Some("schema"), "{bad:?}");
        }
        assert!(Fence::in_schema("Money \"and\" more").is_ok());
    }
}
