//! Each version of PostgreSQL, installed and in a container: it serves, and does what the tests of
//! faults ask of it.

#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddrV4, TcpStream},
    process::Command,
    time::Duration,
};

use dlock_servers::{CERTIFIED, Identity, PgBouncer, PostgresServer, PostgresVersion};

/// What a client sends first that wants TLS; the server answers with one letter.
const TLS_WANTED: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

fn one(server: &PostgresServer, sql: &str) -> String {
    server.query("d", sql).concat().concat()
}

/// Rows outlive `kill -9` and a stop; a backup takes the server back.
fn lives(mut server: PostgresServer) {
    server.new_database("d");
    server.execute("d", "CREATE TABLE t (n int); INSERT INTO t VALUES (1), (NULL)");
    assert_eq!(server.query("d", "SELECT n, 'a b' FROM t ORDER BY n"), [["1", "a b"], ["", "a b"]]);
    let version = one(&server, "SELECT current_setting('server_version_num')::int / 10000");
    assert!(version.parse::<u32>().unwrap() >= server.version().to_string().parse().unwrap());

    let (port, url) = (server.port(), server.url("d"));
    server.kill();
    assert!(server.try_query("d", "SELECT 1").is_err());
    server.restart();
    assert_eq!((server.port(), server.url("d")), (port, url));
    assert_eq!(one(&server, "SELECT count(*) FROM t"), "2", "what was committed is there");

    server.stop();
    assert!(server.log().contains("database system is shut down"), "{}", server.log());
    let backup = server.back_up();
    server.restart();
    server.execute("d", "INSERT INTO t VALUES (3); CREATE TABLE later (n int)");
    server.kill();
    server.put_back(&backup);
    server.restart();
    assert_eq!(one(&server, "SELECT count(*), to_regclass('later') IS NULL FROM t"), "2t");

    let dump = server.dump("d");
    server.restore("again", &dump);
    assert_eq!(server.query("again", "SELECT count(*) FROM t"), [["2"]]);
}

/// The letter that comes back when it goes on, after silence while it stood.
fn silent(address: SocketAddrV4, go_on: impl FnOnce()) -> u8 {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(&TLS_WANTED).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut letter = [0];
    assert!(client.read_exact(&mut letter).is_err(), "it answers though it stands still");
    go_on();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    client.read_exact(&mut letter).unwrap();
    letter[0]
}

/// Nothing is answered while it is paused, and everything afterwards; paused it can be killed.
fn pauses(mut server: PostgresServer) {
    server.pause();
    assert_eq!(silent(server.address(), || server.resume()), b'N');
    server.pause();
    server.kill();
    server.restart();
    assert_eq!(server.query("postgres", "SELECT 1"), [["1"]]);
}

macro_rules! on {
    ($module:ident, $start:expr) => {
        mod $module {
            use super::*;

            #[test]
            fn rows_outlive_kill_9_and_a_backup_takes_them_back() {
                lives($start(&[]));
            }

            #[test]
            fn it_stands_still_and_goes_on() {
                pauses($start(&[]));
            }

            #[test]
            #[should_panic(expected = "unrecognized configuration parameter")]
            fn what_postgres_says_is_shown_when_it_does_not_start() {
                let _server = $start(&[("no_such_setting", "1")]);
            }
        }
    };
}

on!(old_postgres, |settings| PostgresServer::start_with(PostgresVersion::Old, settings));
on!(new_postgres, |settings| PostgresServer::start_with(PostgresVersion::New, settings));
on!(old_postgres_in_a_container, |settings| {
    PostgresServer::start_in_container(PostgresVersion::Old, settings)
});
on!(new_postgres_in_a_container, |settings| {
    PostgresServer::start_in_container(PostgresVersion::New, settings)
});

/// What `psql` prints for a statement through an address.
fn psql(url: &str, sql: &str) -> Result<String, String> {
    let output = Command::new("psql").args(["-XAtq", url, "-c", sql]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn serves_tls(version: PostgresVersion) {
    let server = PostgresServer::start_with_tls(version, &[]);
    let authority = server.authority().display();
    let url = format!("{}?sslmode=verify-full&sslrootcert={authority}", server.url("postgres"));
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(psql(&url, encrypted), Ok("t".to_owned()));
    server.execute("postgres", &format!("CREATE ROLE {CERTIFIED} LOGIN"));
    let Identity { certificate, key } = server.identity();
    let bare = format!("postgres://{CERTIFIED}@{}/postgres?sslmode=require", server.address());
    let identified = format!("{bare}&sslcert={}&sslkey={}", certificate.display(), key.display());
    assert_eq!(psql(&identified, "SELECT current_user"), Ok(CERTIFIED.to_owned()));
    let refused = psql(&bare, encrypted).unwrap_err();
    assert!(refused.contains("requires a valid client certificate"), "{refused}");
    let other = PostgresServer::start_with_tls(version, &[]);
    let url = format!("{}?sslmode=verify-full&sslrootcert={authority}", other.url("postgres"));
    let refused = psql(&url, encrypted).unwrap_err();
    assert!(refused.contains("certificate verify failed"), "{refused}");
}

#[test]
fn old_postgres_serves_tls_with_a_certificate_that_can_be_checked() {
    serves_tls(PostgresVersion::Old);
}

#[test]
fn new_postgres_serves_tls_with_a_certificate_that_can_be_checked() {
    serves_tls(PostgresVersion::New);
}

#[test]
fn old_postgres_behind_pgbouncer_is_paused_killed_and_back() {
    let server = PostgresServer::start(PostgresVersion::Old);
    server.new_database("d");
    let mut bouncer = PgBouncer::start(&server, 1);
    let url = bouncer.url("d");
    assert_eq!(psql(&url, "SELECT current_database()"), Ok("d".to_owned()));
    let mode = psql(&bouncer.url("pgbouncer"), "SHOW CONFIG").unwrap();
    assert!(mode.contains("pool_mode|transaction"), "{mode}");
    let connection = psql(&url, "SELECT pg_backend_pid()");
    assert_eq!(psql(&url, "SELECT pg_backend_pid()"), connection, "clients share what there is");

    bouncer.pause();
    assert_eq!(silent(bouncer.address(), || bouncer.resume()), b'N');
    bouncer.kill();
    assert!(psql(&url, "SELECT 1").is_err());
    bouncer.restart();
    assert_eq!(psql(&url, "SELECT 1"), Ok("1".to_owned()));
    let wrong = url.replace(server.password(), "wrong");
    assert!(psql(&wrong, "SELECT 1").unwrap_err().contains("failed"), "passwords are checked");
}
