//! A cluster that was set back while no server ran (trap 15).

use dlock_e2e::{client::is_problem, etcd::Etcd, eventually};
use dlock_servers::{EtcdCluster, Version};
use serde_json::json;

use crate::serve;

/// With a state file the next server knows. (Without one it cannot: the control in the store's own
/// tests hands out a token twice.)
#[test]
fn c64_with_a_state_file_a_server_on_old_etcd_grants_nothing_after_a_restore() {
    let place = tempfile::tempdir().unwrap();
    let mut cluster = EtcdCluster::start(Version::Old, 1);
    cluster.kill(0);
    let backup = cluster.back_up(0);
    cluster.restart(0);
    let etcd = Etcd::at(place.path(), cluster.endpoint(0));
    let state = place.path().join("revision");
    let mut server =
        serve(place.path(), &etcd, &format!("lock.state_file = '{}'", state.display()));
    let wish = json!({ "name": "k", "owner": "me", "ttl_ms": 60_000 });
    let held = server.client().call("/v1/locks/acquire", &wish, 200);
    let token = held["fencing_token"].as_u64().unwrap();
    // It is written once a second; whoever restores a backup takes longer.
    let written = || {
        let text = std::fs::read_to_string(&state).unwrap();
        let revision = text.lines().next().unwrap().strip_prefix("revision ").unwrap();
        revision.parse::<u64>().unwrap() >= token
    };
    eventually("the state file knows the grant", written);
    server.kill();
    cluster.kill(0);
    cluster.put_back(0, &backup);
    cluster.restart(0);

    server.restart();
    let refused = server.client().call("/v1/locks/acquire", &wish, 500);
    assert!(is_problem(&refused, "invariant-violated"), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("dlock floor raise"), "{refused}");
    server.client().call("/v1/floor", &json!({ "at_least": token + 10 }), 200);
    let next = server.client().call("/v1/locks/acquire", &wish, 200);
    assert!(next["fencing_token"].as_u64().unwrap() > token + 10, "{next}");
}
