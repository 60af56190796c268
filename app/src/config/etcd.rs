//! The keys of the etcd store, and what they say.

use std::path::PathBuf;

use super::kind::Kind;
use super::table::{Key, entry};

/// The keys; only builds with the store have them.
pub static KEYS: &[Key] = &[
    entry(
        "etcd.endpoints",
        Kind::Servers,
        Some("http://127.0.0.1:2379"),
        Some("--etcd-endpoints"),
        "the members of the etcd cluster that the server keeps locks in",
    ),
    entry(
        "etcd.prefix",
        Kind::Prefix,
        Some("/dlock"),
        None,
        "what the names of all keys in etcd begin with",
    ),
    entry("etcd.username", Kind::Word, None, None, "the user to etcd, where it asks for one"),
    entry(
        "etcd.password_file",
        Kind::Path,
        None,
        None,
        "the file with that user's password; a newline at its end is not part of it",
    ),
    entry(
        "etcd.tls.ca_file",
        Kind::Path,
        None,
        None,
        "the certificates, in PEM, of whoever may have signed the members'",
    ),
    entry("etcd.tls.cert_file", Kind::Path, None, None, "our own certificate to etcd, in PEM"),
    entry("etcd.tls.key_file", Kind::Path, None, None, "the key of our own certificate, in PEM"),
    entry(
        "etcd.tls.server_name",
        Kind::Word,
        None,
        None,
        "the name in the members' certificates, if it is not that in their addresses",
    ),
    entry(
        "lock.state_file",
        Kind::Path,
        None,
        None,
        "a file of this server's own that keeps the highest revision of etcd over a restart, to \
         notice one that was set back meanwhile",
    ),
];

/// What the keys say; empty in a build without the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtcdPlace {
    /// `etcd.endpoints`.
    pub endpoints: Vec<String>,
    /// `etcd.prefix`.
    pub prefix: String,
    /// `etcd.username`.
    pub username: Option<String>,
    /// `etcd.password_file`.
    pub password_file: Option<PathBuf>,
    /// `etcd.tls.ca_file`.
    pub ca_file: Option<PathBuf>,
    /// `etcd.tls.cert_file`.
    pub cert_file: Option<PathBuf>,
    /// `etcd.tls.key_file`.
    pub key_file: Option<PathBuf>,
    /// `etcd.tls.server_name`.
    pub server_name: Option<String>,
    /// `lock.state_file`.
    pub state_file: Option<PathBuf>,
}
