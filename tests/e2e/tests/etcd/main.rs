//! `dlock serve` with its locks in an etcd cluster, and on none.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod credentials;
mod going_back;
mod refused;
mod serving;

use std::{fs::OpenOptions, io::Write as _, path::Path};

use dlock_e2e::{etcd::Etcd, server::Server};

/// A server on these options, with more lines in its file in this folder.
fn serve(place: &Path, etcd: &Etcd, lines: &str) -> Server {
    let mut file = OpenOptions::new().append(true).open(place.join("dlock.toml")).unwrap();
    writeln!(file, "{lines}").unwrap();
    let options: Vec<&str> = etcd.options.iter().map(String::as_str).collect();
    Server::start(place, &options)
}
