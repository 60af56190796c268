//! Runs one PostgreSQL, with a PgBouncer before it, for as long as somebody holds this program's input
//! open: `test-postgres 15|17 [in-a-container|alone]`; alone it has no PgBouncer.
//!
//! Once both serve, the addresses of the database `dlock` on the one and through the other are printed
//! as a line. When the input ends they are taken down, and so they are if this program is killed.

use std::process::ExitCode;

use dlock_servers::{PgBouncer, PostgresServer, PostgresVersion, hold};

/// The database that the suites share.
const DATABASE: &str = "dlock";

/// How many connections the suites, which run at the same time, have to the database: enough for each
/// test, and few enough that they are given from one to the other.
const POOL: usize = 40;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let version = match args.next().as_deref() {
        Some("15") => PostgresVersion::Old,
        Some("17") => PostgresVersion::New,
        _ => return ExitCode::from(2),
    };
    // What is missing is said by a panic, which is this program's way to end with a message.
    let (server, alone) = match args.next().as_deref() {
        None => (PostgresServer::start(version), false),
        Some("alone") => (PostgresServer::start(version), true),
        Some("in-a-container") => (PostgresServer::start_in_container(version, &[]), true),
        Some(_) => return ExitCode::from(2),
    };
    server.new_database(DATABASE);
    let bouncer = (!alone).then(|| PgBouncer::start(&server, POOL));
    let through = bouncer.as_ref().map(|bouncer| bouncer.url(DATABASE));
    hold(format!("{} {}", server.url(DATABASE), through.unwrap_or_default()).trim_end())
}
