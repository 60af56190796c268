//! Two servers on one data folder are one lock service (decision 4, INV-08).

use dlock_e2e::{eventually, raw::Raw, server::Server};
use serde_json::json;

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, naming, token, wanting};

#[test]
fn two_servers_on_one_folder_exclude_each_other() {
    let one = World::new();
    let mut two = Server::start(one.place.path(), &[]);
    assert_ne!(one.address(), two.address());
    let (here, there) = (one.client(), two.client());
    let grant = acquire(&here, "k", "a", LONG);
    let refused = there.call(ACQUIRE, &wanting("k", "b", LONG, 0), 409);
    assert_eq!(
        (&refused["holder"]["owner"], token(&refused["holder"])),
        (&json!("a"), token(&grant))
    );
    // What one granted the other renews, whatever happens to the first.
    assert_eq!(token(&there.call(RENEW, &naming(&grant), 200)), token(&grant));
    two.kill();
    two.restart();
    there.call(ACQUIRE, &wanting("k", "b", LONG, 0), 409);
    assert_eq!(there.call(RELEASE, &naming(&grant), 200)["released"], true);
    assert_eq!(here.inspect("k"), None);
    let next = acquire(&there, "k", "b", LONG);
    assert!(token(&next) > token(&grant));
    let stale = here.call(RELEASE, &naming(&grant), 200);
    assert_eq!(stale, json!({"released": false, "current": "other"}));
}

#[test]
fn inv08_a_release_through_one_wakes_a_long_poll_at_the_other() {
    let one = World::new();
    let two = Server::start(one.place.path(), &[]);
    let (here, there) = (one.client(), two.client());
    // Lifetimes are too long for an expiry to help.
    let mut holder = acquire(&here, "k", "a", LONG);
    for round in 0..5 {
        let (from, waits_at) = if round % 2 == 0 { (&here, &two) } else { (&there, &one.server) };
        let owner = format!("waiter-{round}");
        let mut waiter = Raw::post(waits_at.address(), ACQUIRE, &wanting("k", &owner, LONG, LONG));
        let client = waits_at.client();
        eventually("it waits", || client.waiters("k") == 1);
        assert_eq!(from.call(RELEASE, &naming(&holder), 200)["released"], true);
        let granted = waiter.answer().unwrap().expect(200);
        assert_eq!(granted["owner"], owner);
        assert!(token(&granted) > token(&holder));
        holder = granted;
    }
}
