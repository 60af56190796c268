//! Servers that keep their locks in a real etcd cluster.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

use std::path::Path;

/// The variable that says where the cluster is.
pub const ENDPOINTS: &str = "TEST_DLOCK_ETCD_ENDPOINTS";

/// A part of the cluster that nobody else uses.
#[derive(Clone, Debug)]
pub struct Etcd {
    /// The members' addresses, with commas between them.
    pub endpoints: String,
    /// What a server is started with to keep its locks there.
    pub options: Vec<String>,
}

impl Etcd {
    /// A part of its own for whoever owns this folder, which the configuration is written to.
    ///
    /// # Panics
    /// When nobody said where a cluster is.
    #[must_use]
    pub fn below(folder: &Path) -> Self {
        let Ok(endpoints) = std::env::var(ENDPOINTS) else {
            panic!(
                "no etcd to test on: run `cargo xtask test`, which starts one, or set {ENDPOINTS} \
                 to the addresses of a cluster, such as http://127.0.0.1:2379"
            )
        };
        Self::at(folder, endpoints)
    }

    /// The same on a cluster of the test's own.
    ///
    /// # Panics
    /// When the configuration cannot be written.
    #[must_use]
    pub fn at(folder: &Path, endpoints: String) -> Self {
        let name = folder.file_name().expect("a folder has a name").to_string_lossy();
        let prefix = format!("/e2e/{}", name.trim_start_matches('.'));
        let file = folder.join("dlock.toml");
        std::fs::write(&file, format!("etcd.prefix = \"{prefix}\"\n")).expect("it can be written");
        let file = file.display().to_string();
        let options = ["--backend", "etcd", "--etcd-endpoints", &endpoints, "--config", &file]
            .map(str::to_owned);
        Self { options: options.into(), endpoints }
    }
}
