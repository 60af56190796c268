//! What is paid through, in a schema of the example's own: payments that are owed, and transfers
//! that were made. Like a real rail it carries out what it is told, twice if told twice.

use std::env;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Bool, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use dlock::FencingToken;
use dlock_fence::{
    Resource,
    postgres::{Fence, FenceError, schema},
};

use crate::{Failed, report::money};

/// The variable that names the database.
pub(crate) const DATABASE: &str = "DATABASE_URL";

/// The lock, and the resource that it protects.
pub(crate) const BATCH: &str = "payments/batch-17";

const TABLES: &str = "
    CREATE TABLE payments (id bigint PRIMARY KEY, payee text NOT NULL, cents bigint NOT NULL);
    INSERT INTO payments VALUES (1, 'Ada', 4000), (2, 'Grace', 5000), (3, 'Edsger', 6000),
        (4, 'Barbara', 7000), (5, 'Tony', 8000);
    CREATE TABLE transfers (payment bigint NOT NULL, cents bigint NOT NULL, token bigint NOT NULL);
";

/// The schema of one run.
pub(crate) struct Place {
    url: String,
    schema: String,
    guarded: bool,
}

/// Where a worker pays.
pub(crate) struct Rail {
    connection: AsyncPgConnection,
    schema: String,
    batch: Resource,
    /// Absent where nothing guards.
    fence: Option<Fence>,
}

/// What is to be paid.
#[derive(QueryableByName)]
pub(crate) struct Payment {
    #[diesel(sql_type = BigInt)]
    pub(crate) id: i64,
    #[diesel(sql_type = Text)]
    pub(crate) payee: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) cents: i64,
}

/// What a run came to.
pub(crate) struct Books {
    owed: i64,
    paid: i64,
    /// The payments that were made more than once.
    pub(crate) twice: Vec<i64>,
}

impl Rail {
    /// Opens a worker's own connection.
    pub(crate) async fn open(schema: &str, guarded: bool) -> Result<Self, Failed> {
        let connection = AsyncPgConnection::establish(&env::var(DATABASE)?).await?;
        let fence = guarded.then(|| Fence::in_schema(schema)).transpose()?;
        Ok(Self { connection, schema: schema.to_owned(), batch: Resource::new(BATCH)?, fence })
    }

    /// Shows a new holder's token, before it reads anything: what it then reads is all that its
    /// predecessors will ever have paid (trap 40). Whether there is anybody to show it to.
    pub(crate) async fn show(&mut self, token: FencingToken) -> Result<bool, FenceError> {
        let Self { connection, batch, fence, .. } = self;
        let Some(fence) = fence else { return Ok(false) };
        connection.transaction(async |open| fence.pass(open, batch, token).await).await?;
        Ok(true)
    }

    /// The payments of the batch without a transfer.
    pub(crate) async fn unpaid(&mut self) -> Result<Vec<Payment>, Failed> {
        let sql = format!(
            "SELECT * FROM {0}.payments \
             WHERE id NOT IN (SELECT payment FROM {0}.transfers) ORDER BY id",
            self.schema
        );
        Ok(sql_query(sql).load(&mut self.connection).await?)
    }

    /// Pays, in a transaction of its own; with the guard only if the token is not stale.
    pub(crate) async fn pay(
        &mut self,
        payment: &Payment,
        token: FencingToken,
    ) -> Result<(), FenceError> {
        let Self { connection, schema, batch, fence } = self;
        let insert = format!("INSERT INTO {schema}.transfers VALUES ($1, $2, $3)");
        let transaction = connection.transaction(async |open| {
            if let Some(fence) = fence {
                fence.pass(open, batch, token).await?;
            }
            let transfer = sql_query(insert)
                .bind::<BigInt, _>(payment.id)
                .bind::<BigInt, _>(payment.cents)
                .bind::<BigInt, _>(token.get().cast_signed());
            transfer.execute(open).await?;
            Ok(())
        });
        transaction.await
    }
}

impl Place {
    /// Makes a schema with a batch of which nothing is paid.
    pub(crate) async fn make(url: &str, guarded: bool) -> Result<Self, Failed> {
        #[derive(QueryableByName)]
        struct Named {
            #[diesel(sql_type = Text)]
            name: String,
        }
        let mut connection = AsyncPgConnection::establish(url).await?;
        let unique = "SELECT 'payout_' || replace(gen_random_uuid()::text, '-', '') AS name";
        let Named { name } = sql_query(unique).get_result(&mut connection).await?;
        // One batch, so one transaction: all of it or nothing.
        let all = format!(
            "BEGIN; CREATE SCHEMA {name}; SET LOCAL search_path TO {name}; {} {TABLES} COMMIT",
            schema()
        );
        connection.batch_execute(&all).await?;
        Ok(Self { url: url.to_owned(), schema: name, guarded })
    }

    /// Takes the schema away with all that is in it.
    pub(crate) async fn remove(&self) -> Result<(), Failed> {
        let mut connection = AsyncPgConnection::establish(&self.url).await?;
        // What is there is this example's own: notices that it goes would tell nothing.
        let sql =
            format!("SET client_min_messages TO warning; DROP SCHEMA {} CASCADE", self.schema);
        Ok(connection.batch_execute(&sql).await?)
    }

    /// Adds up what was owed and what was paid.
    pub(crate) async fn books(&self) -> Result<Books, Failed> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            id: i64,
            #[diesel(sql_type = BigInt)]
            owed: i64,
            #[diesel(sql_type = BigInt)]
            paid: i64,
            #[diesel(sql_type = Bool)]
            twice: bool,
        }
        let sql = format!(
            "SELECT p.id, p.cents AS owed, count(t.*) > 1 AS twice,
                coalesce(sum(t.cents), 0)::bigint AS paid
            FROM {0}.payments p LEFT JOIN {0}.transfers t ON t.payment = p.id
            GROUP BY p.id ORDER BY p.id",
            self.schema
        );
        let mut connection = AsyncPgConnection::establish(&self.url).await?;
        let rows: Vec<Row> = sql_query(sql).load(&mut connection).await?;
        Ok(Books {
            owed: rows.iter().map(|row| row.owed).sum(),
            paid: rows.iter().map(|row| row.paid).sum(),
            twice: rows.iter().filter(|row| row.twice).map(|row| row.id).collect(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn guarded(&self) -> bool {
        self.guarded
    }
}

impl Books {
    pub(crate) fn exact(&self) -> bool {
        self.owed == self.paid && self.twice.is_empty()
    }

    /// In a line.
    pub(crate) fn verdict(&self) -> String {
        let (owed, paid) = (money(self.owed), money(self.paid));
        if self.exact() {
            return format!("owed {owed}, paid {paid}: exact");
        }
        let twice: Vec<_> = self.twice.iter().map(i64::to_string).collect();
        let over = money(self.paid - self.owed);
        format!("owed {owed}, paid {paid}: {over} too much, paid twice: {}", twice.join(", "))
    }
}
