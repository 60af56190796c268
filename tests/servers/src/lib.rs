//! Real servers for tests: etcd and PostgreSQL that a test starts for itself, pauses, kills, starts
//! again, and leaves nothing of.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`cluster`](EtcdCluster), `gateway` | a cluster of etcd; what a member says of itself over HTTP |
//! | [`version`](Version) | which etcd, and where one is found: told by `cargo xtask test`, or installed |
//! | [`postgres`](PostgresServer) | a PostgreSQL; its [versions](PostgresVersion), clients |
//! | [`bouncer`](PgBouncer) | a PgBouncer before a PostgreSQL |
//! | `certificates` | for servers and clients, made when they are asked for |
//! | `source` | what says where a server's program is |
//! | `place` | a server wherever it runs, and what can be done to it |
//! | `process`, `container` | a server as a process of this machine, or in a container |
//! | `tree` | a process with those that it started, signalled as one |
//! | `plain` | running as somebody who is not root |
//! | `ports` | an address of this process's own, and ports on it |
//! | `watchdog` | who cleans up when the test process is killed |
//! | `wait` | waiting for something, with an end |
//! | [`hold`] | what the programs do that run a server for somebody else |
//!
//! # What stays true
//! - A server that cannot be had fails the test and says what to do; nothing is skipped here.
//! - `cargo xtask test` leaves out by name what a machine cannot have, and says so: a test that
//!   needs one version has `old_etcd`, `new_etcd`, `old_postgres` or `new_postgres` in its name, one
//!   that needs a container engine has `in_a_container`.
//! - Everything is gone when a server is dropped, also by a panic, and when the process ends in
//!   any other way, `kill -9` among them: processes, containers, networks, data.
//! - Servers of tests that run at the same time do not meet, in one process or in several.
//!
//! All calls block, and may be made inside a runtime of tokio. They hold up the thread that makes
//! them: where tasks must go on meanwhile, the test's runtime needs several threads.

mod bouncer;
mod certificates;
mod cluster;
mod container;
mod gateway;
mod hold;
mod place;
mod plain;
mod ports;
mod postgres;
mod process;
mod source;
mod tree;
mod version;
mod wait;
mod watchdog;

pub use bouncer::{PgBouncer, Upstream};
pub use certificates::Identity;
pub use cluster::{Backup, EtcdCluster};
pub use hold::hold;
pub use postgres::{CERTIFIED, PostgresBackup, PostgresServer, PostgresVersion};
pub use version::Version;
