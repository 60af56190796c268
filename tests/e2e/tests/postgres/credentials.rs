//! How a server shows the database who it is: a password in a file, or a certificate.

use std::path::Path;

use dlock_e2e::postgres::Postgres;
use dlock_servers::{CERTIFIED, PostgresServer, PostgresVersion};
use serde_json::json;

use crate::{said, serve};

/// Grants and releases through a server that is started so.
fn serves(postgres: &Postgres, lines: &str) {
    let place = tempfile::tempdir().unwrap();
    let server = serve(place.path(), &postgres.options_and(place.path(), lines));
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    let grant = server.client().call("/v1/locks/acquire", &wish, 200);
    let proof = json!({
        "name": "k", "session_id": grant["session_id"], "fencing_token": grant["fencing_token"],
    });
    assert_eq!(server.client().call("/v1/locks/release", &proof, 200)["released"], true);
}

/// A server that is started so ends with 77, and does not say the password.
#[track_caller]
fn is_refused(postgres: &Postgres, lines: &str) {
    let place = tempfile::tempdir().unwrap();
    let options = postgres.options_and(place.path(), lines);
    let words = ["serve", "--listen", "127.0.0.1:0"];
    let words: Vec<&str> = words.into_iter().chain(options.iter().map(String::as_str)).collect();
    let said = said(&words, &[]);
    assert_eq!((said.code, said.out.as_str()), (Some(77), ""), "{said:?}");
    assert!(!said.err.contains("hush"), "{said:?}");
}

/// The lines for TLS with this authority.
fn tls(authority: &Path) -> String {
    format!("postgres.tls.ca_file = '{}'", authority.display())
}

#[test]
fn a_password_in_a_file_lets_in_and_another_one_does_not() {
    let place = tempfile::tempdir().unwrap();
    let owner = Postgres::beside(place.path());
    let role = owner.new_role();
    let all = format!("CREATE SCHEMA {} AUTHORIZATION {}", owner.schema, role.name);
    owner.psql(&all).unwrap();
    // As the address is where others can read it.
    let (_, at) = owner.url.rsplit_once('@').unwrap();
    let bare = Postgres { url: format!("postgres://{}@{at}", role.name), ..owner.clone() };
    let file = place.path().join("password");
    let line = format!("postgres.password_file = '{}'", file.display());
    // Its password is its name, and one newline at the end is not part of it.
    std::fs::write(&file, format!("{}\n", role.name)).unwrap();
    serves(&bare, &line);
    // What the file says goes before what the address says.
    serves(&owner.seen_by(&role.name, "hush"), &line);
    std::fs::write(&file, "hush").unwrap();
    is_refused(&bare, &line);
    is_refused(&bare, "");
}

#[test]
fn old_postgres_lets_a_server_in_by_its_certificate() {
    let database = PostgresServer::start_with_tls(PostgresVersion::Old, &[]);
    database.execute("postgres", &format!("CREATE ROLE {CERTIFIED} LOGIN SUPERUSER"));
    let postgres = Postgres {
        url: format!("postgres://{CERTIFIED}@{}/postgres", database.address()),
        schema: "dlock".to_owned(),
    };
    let encrypted = tls(database.authority());
    let own = database.identity();
    let identified = format!(
        "{encrypted}\npostgres.tls.cert_file = '{}'\npostgres.tls.key_file = '{}'",
        own.certificate.display(),
        own.key.display()
    );
    serves(&postgres, &identified);
    is_refused(&postgres, &encrypted);
    is_refused(&postgres, "");
}
