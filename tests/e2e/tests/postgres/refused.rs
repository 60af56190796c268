//! What a server does not start with, and what nobody gets to read.

use dlock_e2e::postgres::Postgres;

use crate::{Said, said};

/// `dlock serve` that must end by itself, saying this; what it says.
#[track_caller]
fn ends(variables: &[(&str, &str)], code: i32, part: &str) -> Said {
    let words = ["serve", "--backend", "postgres", "--listen", "127.0.0.1:0"];
    let said = said(&words, variables);
    assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{said:?}");
    assert!(said.err.contains(part), "{part}: {said:?}");
    assert!(!said.err.contains("hush"), "{said:?}");
    said
}

const SOMEWHERE: (&str, &str) = ("DLOCK_POSTGRES_URL", "postgres://me:hush@127.0.0.1:1/db");

#[test]
fn a_database_that_is_not_there_is_69_and_says_what_to_do() {
    let said = ends(&[SOMEWHERE], 69, "db at 127.0.0.1:1");
    assert!(
        said.err.contains("start the database") && said.err.contains("postgres.url"),
        "{said:?}"
    );
    for key in ["PASSWORD_FILE", "TLS_CA_FILE"] {
        let variable = format!("DLOCK_POSTGRES_{key}");
        let name = key.to_lowercase().replacen("tls_", "tls.", 1);
        ends(&[SOMEWHERE, (&variable, "/absent")], 69, &format!("postgres.{name}: /absent"));
    }
}

#[test]
fn whoever_is_not_let_in_gets_77() {
    let place = tempfile::tempdir().unwrap();
    let postgres = Postgres::beside(place.path());
    let stranger = postgres.seen_by("dlock_e2e_nobody", "hush");
    let said = ends(&[("DLOCK_POSTGRES_URL", &stranger.url)], 77, "postgres.password_file");
    assert!(said.err.contains("dlock_e2e_nobody"), "{said:?}");
    let (server, _) = postgres.url.rsplit_once('/').unwrap();
    let absent = format!("{server}/dlock_e2e_absent");
    ends(&[("DLOCK_POSTGRES_URL", &absent)], 77, "\"dlock_e2e_absent\" does not exist");
}

#[test]
fn what_cannot_stand_is_bad_usage_and_names_its_key() {
    ends(&[], 64, "postgres.url: must be set");
    for (key, value) in [
        ("postgres.url", "hush"),
        ("postgres.url", "http://me:hush@127.0.0.1/db"),
        ("postgres.url", "postgres://me:hush@127.0.0.1:hush/db"),
        ("postgres.url", "postgres://me:hush@127.0.0.1/db?sslmode=hush"),
        ("postgres.schema", "A"),
        ("postgres.schema", "pg_x"),
        ("postgres.schema", "a; DROP"),
        ("postgres.pool", "2"),
        ("postgres.pool", "1001"),
        ("postgres.after_failover", "hope"),
    ] {
        let variable = format!("DLOCK_{}", key.to_uppercase().replace('.', "_"));
        ends(&[SOMEWHERE, (&variable, value)], 64, &variable);
    }
    let secure = "postgres://me:hush@127.0.0.1:1/db?sslmode=require";
    ends(&[("DLOCK_POSTGRES_URL", secure)], 64, "postgres.tls.ca_file");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("no.pem").display().to_string();
    std::fs::write(&file, "hush").unwrap();
    let certificate = ("DLOCK_POSTGRES_TLS_CA_FILE", file.as_str());
    ends(&[SOMEWHERE, certificate], 64, "postgres.tls.ca_file: holds no certificate");
}

/// What belongs together must be said together, and is found before anything starts.
#[test]
fn half_of_a_pair_is_bad_usage() {
    for (half, missing) in [
        ("DLOCK_POSTGRES_TLS_CERT_FILE", "postgres.tls.key_file"),
        ("DLOCK_POSTGRES_TLS_KEY_FILE", "postgres.tls.cert_file"),
    ] {
        ends(&[SOMEWHERE, (half, "/x")], 64, missing);
        let check = |backend| {
            let variables = [SOMEWHERE, (half, "/x"), ("DLOCK_LOCK_BACKEND", backend)];
            said(&["config", "check"], &variables).code
        };
        assert_eq!((check("postgres"), check("memory")), (Some(64), Some(0)), "{half}");
    }
    let both =
        [SOMEWHERE, ("DLOCK_POSTGRES_TLS_CERT_FILE", "/x"), ("DLOCK_POSTGRES_TLS_KEY_FILE", "/x")];
    ends(&both, 64, "postgres.tls.ca_file");
}

/// Its address may hold a password.
#[test]
fn nobody_gets_to_read_the_address() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("dlock.toml").display().to_string();
    let url = SOMEWHERE.1;
    std::fs::write(&file, format!("[postgres]\nurl = \"{url}\"\n")).unwrap();
    let from_file = said(&["config", "show", "--config", &file], &[]);
    let from_variable = said(&["config", "show"], &[SOMEWHERE]);
    for (shown, origin) in [(from_file, "dlock.toml, postgres.url"), (from_variable, SOMEWHERE.0)] {
        assert_eq!(shown.code, Some(0), "{shown:?}");
        let row = shown.out.lines().find(|line| line.starts_with("postgres.url ")).unwrap();
        assert!(row.contains("(hidden)") && row.contains(origin), "{row}");
        assert!(!shown.out.contains("hush"), "{shown:?}");
    }
    // A file that is broken where the address stands.
    std::fs::write(&file, format!("[postgres]\nurl = \"{url}\n")).unwrap();
    let broken = said(&["config", "check", "--config", &file], &[]);
    assert_eq!(broken.code, Some(64), "{broken:?}");
    assert!(broken.err.contains("line 2") && !broken.err.contains("hush"), "{broken:?}");
}
