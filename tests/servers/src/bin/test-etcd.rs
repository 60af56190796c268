//! Runs one etcd for as long as somebody holds this program's input open:
//! `test-etcd 3.4|3.5 [in-a-container]`.
//!
//! Once the etcd serves, its address is printed as a line. When the input ends the etcd is taken
//! down, and so it is if this program is killed.

use std::process::ExitCode;

use dlock_servers::{EtcdCluster, Version, hold};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let version = match args.next().as_deref() {
        Some("3.4") => Version::Old,
        Some("3.5") => Version::New,
        _ => return ExitCode::from(2),
    };
    // What is missing is said by a panic, which is this program's way to end with a message.
    let cluster = match args.next().as_deref() {
        None => EtcdCluster::start(version, 1),
        Some("in-a-container") => EtcdCluster::start_in_containers(version, 1, &[]),
        Some(_) => return ExitCode::from(2),
    };
    hold(&cluster.endpoints().join(","))
}
