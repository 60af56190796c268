//! Others who put something of the guard's name where a search path leads.

use dlock_servers::PostgresVersion;

use crate::{
    on_both,
    support::{Place, assert_stale},
};

on_both! {
    a_function_that_fits_better_answers_only_whoever_names_no_schema
    a_table_of_the_session_catches_only_a_statement_that_names_no_schema
}

/// The last schema of the path is enough: a number in a statement is an `integer`, and the guard's own
/// function takes a `bigint`.
async fn a_function_that_fits_better_answers_only_whoever_names_no_schema(
    version: PostgresVersion,
) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.write(5).await.unwrap();
    let (ours, shared) = (place.quoted(), format!("\"{} shared\"", place.schema.replace('"', "")));
    writer
        .run(&format!(
            "CREATE SCHEMA {shared}; CREATE FUNCTION {shared}.dlock_fence_pass(text, integer) \
             RETURNS void LANGUAGE sql AS 'SELECT'"
        ))
        .await;
    let call = |function: &str| {
        place.psql(&format!(
            "SET search_path TO {ours}, {shared}; SELECT {function}('payments/batch-17', 4)"
        ))
    };
    assert!(call("dlock_fence_pass").is_ok(), "naive: what is stale passes");
    let refused = call(&format!("{ours}.dlock_fence_pass")).unwrap_err();
    assert!(refused.contains("LKF01"), "{refused}");
    writer.run(&format!("DROP SCHEMA {shared} CASCADE")).await;
}

/// What a session made for a while comes before every schema of its path; behind a pooler somebody else
/// may have made it.
async fn a_table_of_the_session_catches_only_a_statement_that_names_no_schema(
    version: PostgresVersion,
) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.write(5).await.unwrap();
    writer.run("CREATE TEMP TABLE dlock_fence (resource text PRIMARY KEY, mark bigint)").await;
    let naive = "WITH seen AS (INSERT INTO dlock_fence AS held VALUES ('payments/batch-17', 4) \
                 ON CONFLICT (resource) DO UPDATE SET mark = greatest(held.mark, excluded.mark) \
                 RETURNING mark) SELECT mark AS number FROM seen";
    assert_eq!(writer.number(naive).await, 4, "naive: what is stale passes");
    assert_stale(writer.write(4).await, 4, 5);
    let ours = place.quoted();
    let call = format!("{ours}.dlock_fence_pass('payments/batch-17', 4)");
    let script = format!(
        "CREATE TEMP TABLE dlock_fence (resource text PRIMARY KEY, mark bigint); SELECT {call}"
    );
    assert!(place.psql(&script).unwrap_err().contains("LKF01"));
}
