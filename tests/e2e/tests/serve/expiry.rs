//! C14: an end is an end, whether or not anybody was waiting for it.

use std::{thread::sleep, time::Duration};

use dlock_e2e::client::is_problem;
use serde_json::json;

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, naming, token};

#[test]
fn c14_what_expired_is_lost_though_nobody_took_it() {
    let mut world = World::new();
    let client = world.client();
    // The first to meet the expired grant is its holder: at the server that knows it, then at one
    // that was killed and started again.
    for restarted in [false, true] {
        let grant = acquire(&client, "k", "a", 1_000);
        let opened = client.call("/v1/sessions", &json!({"owner": "a", "ttl_ms": 1_000}), 201);
        let session = json!({"session_id": opened["session_id"]});
        let shared = json!({"name": "shared", "session_id": opened["session_id"]});
        let shared = client.call(ACQUIRE, &shared, 200);
        if restarted {
            world.kill_and_restart();
        }
        // From before the answers came, leases of a second cannot last longer.
        sleep(Duration::from_millis(1_001));
        for grant in [&grant, &shared] {
            let name = grant["name"].as_str().unwrap();
            for _ in 0..2 {
                let lost = client.call(RENEW, &naming(grant), 410);
                assert!(is_problem(&lost, "lock-lost"), "{lost}");
                assert_eq!(client.inspect(name), None, "nothing was revived");
            }
            let released = client.call(RELEASE, &naming(grant), 200);
            assert_eq!(released, json!({"released": false, "current": "none"}));
        }
        let gone = client.call("/v1/sessions/keepalive", &session, 410);
        assert!(is_problem(&gone, "session-expired"), "{gone}");
        let next = acquire(&client, "k", "b", LONG);
        assert!(token(&next) > token(&grant));
        client.call(RENEW, &naming(&grant), 410);
        client.call(RELEASE, &naming(&next), 200);
    }
}
