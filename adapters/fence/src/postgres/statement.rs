//! The one statement.

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{BigInt, Text},
};

/// Shows a token to a resource and answers the highest token that it has seen then. The functions
/// of [`schema`](super::schema) do the same.
///
/// The row is written back where the mark stays: behind the wait for another writer only the row
/// that is being written is the newest one. A look at the table in the same statement sees it as it
/// was before the wait, and cannot name the token that refused.
#[derive(Debug)]
pub(super) struct Show<'a> {
    /// Where the table is.
    pub(super) schema: &'a str,
    pub(super) resource: &'a str,
    pub(super) token: i64,
}

impl QueryFragment<Pg> for Show<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("INSERT INTO ");
        out.push_identifier(self.schema)?;
        out.push_sql(".dlock_fence AS held (resource, mark) VALUES (");
        out.push_bind_param::<Text, _>(self.resource)?;
        out.push_sql(", ");
        out.push_bind_param::<BigInt, _>(&self.token)?;
        out.push_sql(
            ") ON CONFLICT (resource) DO UPDATE SET mark = greatest(held.mark, excluded.mark) \
             RETURNING mark",
        );
        Ok(())
    }
}

impl Query for Show<'_> {
    type SqlType = BigInt;
}

/// Known by its text, since the schema is part of it.
impl QueryId for Show<'_> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}
