//! Raising a namespace's floor.
//!
//! All tokens come from one sequence, so one floor serves every namespace: raising it for one lets
//! the others' tokens leap, which nobody minds. Only the named namespace's grants end. Whoever raises
//! holds off all that may draw a token, so that none drawn before is granted after.

use async_trait::async_trait;
use diesel::{
    sql_query,
    sql_types::{BigInt, Text},
};
use dlock_domain::{Deadline, LockError, Namespace, Result, TokenFloor};
use dlock_ports::{FloorControl, Raised};
use futures_util::FutureExt;

use crate::{
    Inner, codec,
    connection::Line,
    error::Failure,
    rows::{Number, There},
    sql,
    wire::{About, Terms},
};

/// What raising came to, or why it was refused.
type Answer = std::result::Result<(TokenFloor, u64), LockError>;

#[async_trait]
impl FloorControl for Inner {
    /// Also lets the namespace's tokens go on in the database's present history: whoever raises knows
    /// which of them may be lost. Of other namespaces' he has said nothing.
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised> {
        let namespace = namespace.as_str().to_owned();
        let knows_history = self.knows_history;
        let work = Box::new(move |line: Line| {
            raise(line, namespace.clone(), at_least, knows_history).boxed()
        });
        let terms = Terms { about: About::Tokens, stepwise: true, ..Terms::TAKE };
        let (floor, grants_ended) = self.wire.transact(terms, by, work).await??;
        Ok(Raised { floor, grants_ended })
    }
}

async fn raise(
    line: Line,
    namespace: String,
    at_least: TokenFloor,
    knows_history: bool,
) -> std::result::Result<Answer, Failure> {
    let highest: Vec<Number> = line.rows(sql_query(sql::HIGHEST)).await?;
    let highest = highest.first().map_or(0, |row| codec::number(row.number));
    let floor = match at_least.check_leap(highest).and_then(|()| TokenFloor::new(highest)) {
        Ok(highest) => at_least.max(highest),
        Err(refused) => return Ok(Err(refused)),
    };
    let column = codec::column(floor.get());
    if column > 0 {
        let set = sql_query(sql::SET_SEQUENCE).bind::<BigInt, _>(column);
        let _: Vec<Number> = line.rows(set).await?;
    }
    // Sessions before rows, as everybody (C43).
    let private = sql_query(sql::LOCK_ALL_PRIVATE).bind::<Text, _>(&namespace);
    let _: Vec<There> = line.rows(private).await?;
    let end = sql_query(sql::END_ALL).bind::<Text, _>(&namespace);
    let ended: Vec<Number> = line.rows(end).await?;
    let note = sql_query(sql::NOTE_FLOOR).bind::<BigInt, _>(column);
    let _: Vec<There> = line.rows(note).await?;
    if knows_history {
        let note = sql_query(sql::NOTE_HISTORY).bind::<Text, _>(&namespace);
        let _: Vec<There> = line.rows(note).await?;
    }
    Ok(Ok((floor, ended.first().map_or(0, |row| codec::number(row.number)))))
}
