//! The payout example on a real database, as its user starts it: what it shows is what README says.

#![expect(clippy::unwrap_used, reason = "a test that meets a surprise ends there")]

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use dlock_servers::{PostgresServer, PostgresVersion};

/// target/debug/deps/<test> -> target/debug/examples/payout
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let found = test.parent().unwrap().parent().unwrap().join("examples/payout");
    assert!(found.is_file(), "run `cargo build -p dlock --example payout` first");
    found
}

fn ran(arguments: &[&str]) -> Output {
    let mut command = Command::new(example());
    command.args(arguments).env_remove("DATABASE_URL").stdin(Stdio::null());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

mod a_late_payment_is_refused_with_the_guard_and_paid_twice_without {
    use super::*;

    #[test]
    fn old_postgres() {
        pays(PostgresVersion::Old);
    }

    #[test]
    fn new_postgres() {
        pays(PostgresVersion::New);
    }
}

fn pays(version: PostgresVersion) {
    let server = PostgresServer::start(version);
    let ran = ran(&["--database", &server.url("postgres")]);
    let (said, complained) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{said}\n{complained}");
    assert_eq!(complained, "");

    let (with, without) = said.split_once("Without the fence guard").unwrap();
    // A new holder's token is at the rail before he reads what is unpaid (trap 40): no late payment of
    // his predecessor can land in between.
    let mut shown = BTreeSet::new();
    for row in with.lines().map(|row| row.split_whitespace().collect::<Vec<_>>()) {
        let [_at, _s, worker, token, ..] = row[..] else { continue };
        let said = row.join(" ");
        if said.contains("shows its token to the rail") {
            shown.insert((worker.to_owned(), token.to_owned()));
        } else if said.contains(" pays ") || said.contains(" is about to pay") {
            let who = (worker.to_owned(), token.to_owned());
            assert!(shown.contains(&who), "{who:?} pays before its token was seen:\n{with}");
        }
    }
    assert!(shown.len() >= 2, "both show their tokens:\n{with}");
    let late = |table: &str| {
        let rows = table.lines().skip_while(|row| !row.contains("SIGCONT")).skip(1);
        let paying: Vec<_> = rows.filter(|row| row.contains(" pays ")).collect();
        assert_eq!(paying.len(), 1, "one payment is late:\n{table}");
        paying.concat()
    };
    assert!(with.starts_with("With the fence guard"), "{said}");
    let refused = late(with);
    assert!(refused.contains("3  pays 60.00 to Edsger: REFUSED, token "), "{refused}");
    assert!(refused.ends_with(" has been accepted"), "{refused}");
    assert!(with.contains("\nowed 300.00, paid 300.00: exact\n"), "{said}");

    let accepted = late(without);
    assert!(accepted.ends_with("3  pays 60.00 to Edsger: accepted"), "{accepted}");
    let total = "\nowed 300.00, paid 360.00: 60.00 too much, paid twice: 3\n";
    assert!(without.contains(total), "{said}");
    let left = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'payout%'";
    assert!(server.query("postgres", left).is_empty(), "its schemas are gone");
}

#[test]
fn without_a_database_it_says_how_to_name_one() {
    let ran = ran(&[]);
    assert!(!ran.status.success());
    assert!(text(&ran.stderr).contains("--database postgres://"), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "");
}
