//! Databases whose owner makes the tables by hand, and roles that only change rows.

use dlock_e2e::postgres::Postgres;
use serde_json::json;

use crate::{said, serve};

#[test]
fn the_sql_is_printed_for_the_schema_that_is_named_or_configured() {
    let schema = |words: &[&str], variables: &[(&str, &str)]| {
        let said = said(&[&["postgres", "schema"], words].concat(), variables);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
        let line = said.out.lines().find(|line| line.starts_with("CREATE SCHEMA")).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let variable = ("DLOCK_POSTGRES_SCHEMA", "configured");
    assert_eq!(schema(&[], &[]), "dlock");
    assert_eq!(schema(&[], &[variable]), "configured");
    assert_eq!(schema(&["--schema", "named"], &[variable]), "named");
    let bad = said(&["postgres", "schema", "--schema", "a b"], &[]);
    assert_eq!((bad.code, bad.out.as_str()), (Some(64), ""), "{bad:?}");
    assert!(bad.err.contains("--schema: must be"), "{bad:?}");
}

/// C47, and what to do then: the owner runs what is printed and grants what its last lines say.
#[test]
fn c47_a_role_without_create_is_told_the_command_and_serves_once_that_was_run() {
    let place = tempfile::tempdir().unwrap();
    let owner = Postgres::beside(place.path());
    let role = owner.new_role();
    let options = role.view().options(place.path());
    let words: Vec<&str> = ["serve", "--listen", "127.0.0.1:0"]
        .into_iter()
        .chain(options.iter().map(String::as_str))
        .collect();
    let refused = said(&words, &[]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(77), ""), "{refused:?}");
    for part in ["`dlock postgres schema`", &role.name, &owner.schema] {
        assert!(refused.err.contains(part), "{part}: {refused:?}");
    }

    let printed = said(&["postgres", "schema", "--schema", &owner.schema], &[]).out;
    owner.psql(&printed).unwrap();
    // Its tables are there, and not for everybody.
    let refused = said(&words, &[]);
    assert!(matches!(refused.code, Some(77)), "{refused:?}");

    let grants = printed.lines().filter_map(|line| line.strip_prefix("-- GRANT "));
    let grants: Vec<_> =
        grants.map(|grant| format!("GRANT {}", grant.replace("dlock_app", &role.name))).collect();
    assert!(!grants.is_empty(), "{printed}");
    owner.psql(&grants.join("\n")).unwrap();
    let view = role.view();
    let create = format!("CREATE TABLE {}.x (y int)", view.schema);
    assert!(view.psql(&create).unwrap_err().contains("permission denied"));

    let server = serve(place.path(), &options);
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    let grant = server.client().call("/v1/locks/acquire", &wish, 200);
    let proof = json!({
        "name": "k", "session_id": grant["session_id"], "fencing_token": grant["fencing_token"],
    });
    server.client().call("/v1/locks/renew", &proof, 200);
    server.client().call("/v1/locks/release", &proof, 200);
    server.client().call("/v1/floor", &json!({ "at_least": 500 }), 200);
    let revoke = json!({ "name": "k", "actor": "me", "reason": "because" });
    server.client().call("/v1/locks/revoke", &revoke, 200);
    // It can tell one history of the database from another.
    assert!(!server.log().contains("is not noticed"), "{}", server.log());

    // A second run is refused as a whole and changes nothing.
    assert!(owner.psql(&printed).is_err());
    server.client().call("/v1/locks/acquire", &wish, 200);
}
