//! Every statement that runs for every call finds its rows by a primary key.
//!
//! `TEST_DLOCK_POSTGRES_ROWS` says how many rows there are; the default is a million.

use std::time::Duration;

use dlock_postgres::sql;
use tokio_postgres::types::{ToSql, Type};

use crate::kit::Place;

const LOCKS: &str = "dlock_locks_pkey";
const SESSIONS: &str = "dlock_sessions_pkey";
const SETTLED: &str = "dlock_settled_pkey";

fn how_many() -> i64 {
    std::env::var("TEST_DLOCK_POSTGRES_ROWS").ok().map_or(1_000_000, |text| text.parse().unwrap())
}

/// A parameter and its type.
type Parameter = (Box<dyn ToSql + Sync + Send>, Type);

fn text(value: &'static str) -> Parameter {
    (Box::new(value), Type::TEXT)
}

fn number(value: impl Into<Option<i64>>) -> Parameter {
    (Box::new(value.into()), Type::INT8)
}

fn yes(value: bool) -> Parameter {
    (Box::new(value), Type::BOOL)
}

fn bytes(value: impl Into<Option<u8>>) -> Parameter {
    (Box::new(value.into().map(|last| [vec![0_u8; 15], vec![last]].concat())), Type::BYTEA)
}

/// As many sessions as a page of a listing may find at their end.
fn many() -> Parameter {
    let ids: Vec<_> = (0..101_u8).map(|last| [vec![0_u8; 15], vec![last]].concat()).collect();
    (Box::new(ids), Type::BYTEA_ARRAY)
}

fn on_key(more: impl IntoIterator<Item = Parameter>) -> Vec<Parameter> {
    [text("default"), text("job/5000")].into_iter().chain(more).collect()
}

async fn plan(place: &Place, statement: &str, parameters: &[Parameter]) -> String {
    let sql = format!("EXPLAIN {statement}");
    let parameters: Vec<(&(dyn ToSql + Sync), Type)> = parameters
        .iter()
        .map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone()))
        .collect();
    let rows = place.raw.query_typed(&sql, &parameters).await;
    let rows = rows.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn hot_statements_use_the_primary_key() {
    let place = Place::new().await;
    let _backend = place.store(Duration::from_secs(60)).await;
    let rows = how_many();
    // Half of the locks are held, a hundred to a session.
    place
        .execute(&format!(
            "INSERT INTO dlock_sessions \
             SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), 'worker', 60000, \
               clock_timestamp() + interval '1 hour', false FROM generate_series(1, {rows} / 100) n; \
             INSERT INTO dlock_locks \
             SELECT 'default', 'job/' || n, n, \
               CASE WHEN n % 2 = 0 THEN decode(lpad(to_hex(n / 100 + 1), 32, '0'), 'hex') END, \
               decode(lpad(to_hex(n), 32, '0'), 'hex'), clock_timestamp(), clock_timestamp() \
             FROM generate_series(1, {rows}) n; \
             INSERT INTO dlock_settled \
             SELECT CASE WHEN n % 2 = 0 THEN ''::bytea \
               ELSE decode(lpad(to_hex(n), 32, '0'), 'hex') END, \
               decode(lpad(to_hex(n), 32, '0'), 'hex'), clock_timestamp() \
             FROM generate_series(1, {rows} / 100) n; \
             ANALYZE dlock_sessions; ANALYZE dlock_locks; ANALYZE dlock_settled"
        ))
        .await;
    let token = || [number(5_000)];
    let session = || vec![bytes(9)];
    let three = vec!["default"; 3];
    let held: Vec<Parameter> = vec![
        bytes(9),
        (Box::new(three), Type::TEXT_ARRAY),
        (Box::new(vec!["job/2", "job/4", "x"]), Type::TEXT_ARRAY),
        (Box::new(vec![2_i64, 4, 9]), Type::INT8_ARRAY),
    ];
    let table: Vec<(&str, Vec<Parameter>, &[&str])> = vec![
        (sql::EXPIRE_HOLDER, on_key([]), &[LOCKS, SESSIONS]),
        (sql::SHARE_SESSION, session(), &[SESSIONS]),
        (sql::LOOK_SESSION, session(), &[SESSIONS]),
        (sql::ENSURE_LOCK, on_key([bytes(9)]), &[SESSIONS]),
        (sql::LOCK_LOCK, on_key([]), &[LOCKS]),
        (sql::LOCK_PRIVATE, on_key([]), &[LOCKS, SESSIONS]),
        (
            sql::GRANT,
            on_key([
                bytes(9),
                bytes(8),
                yes(false),
                text("worker"),
                number(60_000),
                bytes(9),
                yes(false),
            ]),
            &[LOCKS, SESSIONS, SETTLED],
        ),
        (sql::LOOK_LOCK, on_key([bytes(9), bytes(8)]), &[LOCKS, SESSIONS, SETTLED]),
        (sql::READ, on_key([]), &[LOCKS, SESSIONS]),
        (sql::LOCK_HOLDER, on_key(token()), &[LOCKS, SESSIONS]),
        (sql::SHARE_GRANT, on_key(token()), &[LOCKS]),
        (sql::EXTEND, on_key(token()), &[LOCKS, SESSIONS]),
        (sql::RELEASE, on_key(token()), &[LOCKS, SESSIONS]),
        (sql::REVOKE, on_key([number(None), text("ops"), text("why")]), &[LOCKS, SESSIONS]),
        (sql::FORGET, on_key([bytes(8), bytes(9), number(4_096)]), &[LOCKS, SESSIONS, SETTLED]),
        (sql::LOCK_SESSION, session(), &[SESSIONS]),
        (sql::KEEP, session(), &[SESSIONS]),
        (sql::KEEP_AS, vec![bytes(9), text("worker"), number(60_000)], &[SESSIONS]),
        // The primary key, or where that is shorter the index of what the session holds.
        (sql::LOST, held, &["using dlock_locks_"]),
        (sql::EXPIRE, session(), &[SESSIONS]),
        (sql::EXPIRE_ALL, vec![many()], &[SESSIONS]),
        (
            sql::LIST,
            vec![text("default"), text(""), text("job/5"), number(101)],
            &[LOCKS, SESSIONS],
        ),
        (sql::LOOK, session(), &[SESSIONS, "dlock_locks_by_session"]),
        (sql::CLOSE, session(), &[SESSIONS]),
    ];
    for (statement, parameters, indexes) in table {
        let plan = plan(&place, statement, &parameters).await;
        for index in indexes {
            assert!(plan.contains(index), "{statement}\ndoes not use {index}:\n{plan}");
        }
        for big in ["dlock_locks", "dlock_sessions", "dlock_settled"] {
            assert!(!plan.contains(&format!("Seq Scan on {big}")), "{statement}\n{plan}");
        }
    }
    place.finish().await;
}
