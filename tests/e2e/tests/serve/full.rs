//! C09: as many wait as may.

use dlock_e2e::{client::is_problem, eventually, raw::Raw};
use serde_json::json;

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, naming, wanting};

#[test]
fn c09_beyond_the_limit_of_waiters_the_newcomer_is_refused_at_once_and_nobody_else() {
    for (key, limit) in [
        ("DLOCK_LOCK_MAX_WAITERS", "lock.max_waiters"),
        ("DLOCK_LOCK_MAX_WAITERS_PER_LOCK", "lock.max_waiters_per_lock"),
    ] {
        let world = World::with(&[], &[(key, "2")]);
        let client = world.client();
        let holder = acquire(&client, "k", "a", LONG);
        let wait =
            |owner: &str| Raw::post(world.address(), ACQUIRE, &wanting("k", owner, LONG, LONG));
        let mut waiters = Vec::new();
        for (nth, owner) in (1..).zip(["first", "second"]) {
            waiters.push(wait(owner));
            eventually("it waits", || client.waiters("k") == nth);
        }
        for _ in 0..3 {
            // It would wait for an hour, if it were not refused.
            let (head, refused) = wait("third").answer_with_head().unwrap();
            let refused = refused.expect(429);
            assert!(is_problem(&refused, "limit"), "{refused}");
            assert_eq!((&refused["limit"], &refused["applied"]), (&json!(limit), &json!("no")));
            assert!(head.iter().any(|line| line.starts_with("retry-after: ")), "{head:?}");
        }
        // Who does not wait needs no place, and what is free is granted whether or not there is one.
        client.call(ACQUIRE, &wanting("k", "third", LONG, 0), 409);
        client.call(ACQUIRE, &wanting("free", "third", LONG, LONG), 200);

        assert_eq!(client.waiters("k"), 2, "those that waited wait on");
        client.call(RELEASE, &naming(&holder), 200);
        let granted = waiters.remove(0).answer().unwrap().expect(200);
        assert_eq!(granted["owner"], "first", "{limit}: in their order");
        let mut third = wait("third");
        eventually("there is a place again", || client.waiters("k") == 2);
        client.call(RELEASE, &naming(&granted), 200);
        let granted = waiters.remove(0).answer().unwrap().expect(200);
        assert_eq!(granted["owner"], "second");
        client.call(RELEASE, &naming(&granted), 200);
        assert_eq!(third.answer().unwrap().expect(200)["owner"], "third");
    }
}
