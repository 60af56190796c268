//! A lock's key as the first two parameters of a statement.

use diesel::{
    pg::Pg,
    query_builder::{BoxedSqlQuery, SqlQuery},
    sql_query,
    sql_types::Text,
};
use dlock_domain::LockKey;

/// A key, owned by the transaction that is about it.
pub(crate) struct Key {
    namespace: String,
    name: String,
}

impl Key {
    pub(crate) fn of(key: &LockKey) -> Self {
        Self {
            namespace: key.namespace().as_str().to_owned(),
            name: key.name().as_str().to_owned(),
        }
    }

    /// A statement whose `$1` is the namespace and whose `$2` is the name; more may be bound.
    pub(crate) fn ask(&self, sql: &'static str) -> BoxedSqlQuery<'_, Pg, SqlQuery> {
        sql_query(sql).into_boxed().bind::<Text, _>(&self.namespace).bind::<Text, _>(&self.name)
    }
}
