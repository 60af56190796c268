//! How a server shows the cluster who it is.

use dlock_e2e::etcd::Etcd;
use dlock_servers::{EtcdCluster, Version};
use serde_json::json;

use crate::serve;

/// The keys about certificates reach the client, both ways.
#[test]
fn old_etcd_knows_a_server_by_its_certificate() {
    let place = tempfile::tempdir().unwrap();
    let cluster = EtcdCluster::start_with_tls(Version::Old);
    let etcd = Etcd::at(place.path(), cluster.secure_endpoint());
    let own = cluster.identity("dlock");
    let lines = format!(
        "etcd.tls.ca_file = '{}'\netcd.tls.cert_file = '{}'\netcd.tls.key_file = '{}'",
        cluster.authority().display(),
        own.certificate.display(),
        own.key.display()
    );
    let server = serve(place.path(), &etcd, &lines);
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    server.client().call("/v1/locks/acquire", &wish, 200);
}
