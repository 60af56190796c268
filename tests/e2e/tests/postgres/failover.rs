//! A database that is not the one, or not on the timeline, that the tokens belong to (trap 29).

use dlock_e2e::{client::is_problem, postgres::Postgres};
use serde_json::json;

use crate::{json, said, serve, token};

#[test]
fn trap29_after_a_failover_nothing_is_granted_until_the_floor_is_raised_or_it_is_trusted() {
    let place = tempfile::tempdir().unwrap();
    let postgres = Postgres::beside(place.path());
    let options = postgres.options(place.path());
    let server = serve(place.path(), &options);
    let wish = |name: &str| json!({ "name": name, "owner": "me", "ttl_ms": 60_000 });
    let held = server.client().call("/v1/locks/acquire", &wish("held"), 200);
    drop(server);
    // As it is where a standby was promoted: the timeline is not the one that was noted.
    let schema = &postgres.schema;
    postgres.psql(&format!("UPDATE {schema}.dlock_meta SET timeline = timeline + 1")).unwrap();

    let server = serve(place.path(), &options);
    let refused = server.client().call("/v1/locks/acquire", &wish("new"), 500);
    assert!(is_problem(&refused, "invariant-violated"), "{refused}");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("dlock floor raise"), "{refused}");
    let at = format!("http://{}", server.address());
    let said = said(&["acquire", "new"], &[("DLOCK_SERVER", &at)]);
    assert_eq!(said.code, Some(70), "{said:?}");
    // What is held can be kept meanwhile.
    let proof = json!({
        "name": "held", "session_id": held["session_id"], "fencing_token": held["fencing_token"],
    });
    server.client().call("/v1/locks/renew", &proof, 200);

    let trusting = {
        let place = tempfile::tempdir().unwrap();
        let file = "postgres.after_failover = 'trust'";
        let server = serve(place.path(), &postgres.options_and(place.path(), file));
        server.client().call("/v1/locks/acquire", &wish("trusted"), 200)
    };
    assert!(token(&trusting) > token(&held));

    let floor = token(&trusting) + 100;
    json(&server, &["floor", "raise", &floor.to_string()], 0);
    assert!(token(&server.client().call("/v1/locks/acquire", &wish("new"), 200)) > floor);
}
