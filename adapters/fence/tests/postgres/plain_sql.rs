//! The functions for other languages, called by `psql`.

use dlock_servers::PostgresVersion;

use crate::{
    on_both,
    support::{Place, assert_stale},
};

on_both! {
    dlock_fence_pass_raises_a_state_of_its_own_with_both_tokens
    dlock_fence_try_pass_says_whether
    all_languages_meet_at_one_mark
    what_is_no_token_or_no_resource_never_passes
    the_schema_may_be_run_again_and_needs_no_more_than_rows_rights_to_be_used
}

async fn dlock_fence_pass_raises_a_state_of_its_own_with_both_tokens(version: PostgresVersion) {
    let place = Place::new(version).await;
    const WRITE_7: &str = "BEGIN; SELECT dlock_fence_pass('batch''s', 7);
        INSERT INTO written (token) VALUES (7); COMMIT";
    for _ in 0..2 {
        place.psql(WRITE_7).unwrap();
    }
    let said = place.psql(&WRITE_7.replace('7', "6")).unwrap_err();
    assert!(said.contains("LKF01: token 6 is stale: 7 has been accepted"), "{said}");
    assert!(said.contains(r#"{"resource" : "batch's", "token" : 6, "mark" : 7}"#), "{said}");
    assert!(said.contains("HINT:"), "{said}");
    assert_eq!(place.writer().await.written().await, [7, 7]);
}

async fn dlock_fence_try_pass_says_whether(version: PostgresVersion) {
    let place = Place::new(version).await;
    let ask = "SELECT dlock_fence_try_pass('r', 2), dlock_fence_try_pass('r', 2),
        dlock_fence_try_pass('r', 1), dlock_fence_try_pass('r', 9), dlock_fence_show('r', 8)";
    assert_eq!(place.psql(ask).unwrap(), [["t", "t", "f", "t", "9"]]);
}

async fn all_languages_meet_at_one_mark(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.write(5).await.unwrap();
    let refused = place.psql("SELECT dlock_fence_pass('payments/batch-17', 4)").unwrap_err();
    assert!(refused.contains("LKF01"), "{refused}");
    place.psql("SELECT dlock_fence_pass('payments/batch-17', 6)").unwrap();
    assert_stale(writer.write(5).await, 5, 6);
}

async fn what_is_no_token_or_no_resource_never_passes(version: PostgresVersion) {
    let place = Place::new(version).await;
    let calls = [
        "('r', NULL)",
        "(NULL, 1)",
        "('r', 0)",
        "('r', -1)",
        "('r', 9007199254740992)",
        "('', 1)",
        "(repeat('r', 513), 1)",
    ];
    // Where there is a mark already, too: no conflict comes before a check.
    place.psql("SELECT dlock_fence_pass('r', 5)").unwrap();
    for call in calls {
        for function in ["dlock_fence_pass", "dlock_fence_try_pass"] {
            let ended = place.psql(&format!("SELECT {function}{call}"));
            assert!(ended.is_err_and(|said| said.contains("violates")), "{function}{call}");
        }
    }
    assert_eq!(place.writer().await.mark().await, 5);
}

async fn the_schema_may_be_run_again_and_needs_no_more_than_rows_rights_to_be_used(
    version: PostgresVersion,
) {
    let place = Place::new(version).await;
    let mut owner = place.writer().await;
    owner.write(5).await.unwrap();
    owner.run(dlock_fence::postgres::schema()).await;
    assert_eq!(owner.mark().await, 5, "its marks stay");
    let role = format!("\"{} clerk\"", place.schema.replace('"', ""));
    let schema = place.quoted();
    owner
        .run(&format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE ON dlock_fence TO {role};
             GRANT INSERT ON written TO {role}; GRANT USAGE ON SEQUENCE written_n_seq TO {role}"
        ))
        .await;
    let mut clerk = place.writer().await;
    clerk.run(&format!("SET ROLE {role}")).await;
    clerk.write(6).await.unwrap();
    assert_stale(clerk.write(4).await, 4, 6);
    clerk.run("SELECT dlock_fence_pass('payments/batch-17', 7)").await;
    // Another search path leads the functions nowhere else.
    clerk
        .run(&format!("SET search_path TO pg_catalog; SELECT {schema}.dlock_fence_pass('r', 1)"))
        .await;
    owner.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}
