//! `revoke`, `session`, `floor`, `health`.

use crate::{World, everywhere, grant};

#[test]
fn a_revoke_breaks_a_lock_and_raises_its_floor() {
    everywhere(|world| {
        let (session, token) = world.acquire("k");
        let number: u64 = token.parse().unwrap();
        let revoke = |more: &[&str], code| {
            world.json(&[&["revoke", "k", "--reason", "it hangs"], more].concat(), code)
        };
        let wrong = (number + 1).to_string();
        let mismatch = revoke(&["--expected-token", &wrong], 75);
        assert_eq!(mismatch["current_token"], number);
        world.json(&["renew", "k", "--token", &token, "--session", &session], 0);
        let done = revoke(&["--expected-token", &token, "--actor", "me"], 0);
        assert_eq!((&done["revoked"], &done["previous_token"]), (&true.into(), &number.into()));
        assert!(done["new_token_floor"].as_u64().unwrap() >= number);
        world.json(&["renew", "k", "--token", &token, "--session", &session], 79);
        let free = revoke(&[], 0);
        assert_eq!((&free["revoked"], &free["previous_token"]), (&false.into(), &().into()));
        assert!(revoke(&["--expected-token", &token], 75)["current_token"].is_null());
        assert!(world.acquire("k").1.parse::<u64>().unwrap() > number);
        let said = world.dlock(&["revoke", "k"]);
        assert_eq!(said.code, Some(64), "a reason is needed: {said:?}");
    });
}

#[test]
fn one_session_holds_many_locks_until_it_is_closed() {
    everywhere(|world| {
        let opened = world.json(&["session", "open", "--owner", "me", "--ttl", "1h"], 0);
        assert_eq!((&opened["owner"], &opened["ttl_ms"]), (&"me".into(), &3_600_000.into()));
        let session = opened["session_id"].as_str().unwrap();
        for name in ["a", "b"] {
            let taken = world.json(&["acquire", name, "--session", session], 0);
            assert_eq!(grant(&taken).0, session);
        }
        let kept = world.json(&["session", "keep", session], 0);
        assert_eq!((&kept["session_id"], &kept["lost"]), (&session.into(), &[(); 0][..].into()));
        assert_eq!(world.json(&["session", "close", session], 0)["closed"], true);
        assert_eq!(world.json(&["list"], 0)["locks"].as_array().unwrap().len(), 0);
        assert_eq!(world.json(&["session", "close", session], 79)["closed"], false);
        world.json(&["session", "keep", session], 79);
        let said = world.dlock(&["session", "open", "--ttl", "10s"]);
        assert!(
            said.out.starts_with("session    ") && said.out.contains("\nvalid for  "),
            "{said:?}"
        );
    });
}

#[test]
fn a_raised_floor_ends_what_is_held_and_every_later_token_is_greater() {
    everywhere(|world| {
        world.acquire("a");
        world.acquire("b");
        let raised = world.json(&["floor", "raise", "5000"], 0);
        assert_eq!((&raised["namespace"], &raised["grants_ended"]), (&"default".into(), &2.into()));
        let floor = raised["token_floor"].as_u64().unwrap();
        assert!(floor >= 5_000);
        assert!(world.acquire("a").1.parse::<u64>().unwrap() > floor);
        // No real restore is that far behind.
        let refused = world.json(&["floor", "raise", "9007199254740991"], 64);
        assert_eq!(refused["field"], "at_least");
        for bad in ["-1", "9007199254740992", "x", ""] {
            assert_eq!(world.dlock(&["floor", "raise", bad]).code, Some(64), "{bad:?}");
        }
    });
}

#[test]
fn health_is_0_while_the_store_answers_and_69_when_it_is_gone() {
    everywhere(|world| {
        assert_eq!(world.json(&["health"], 0)["ready"], true);
        assert_eq!(world.dlock(&["health"]).out, "ready  yes\n");
    });
    let mut world = World::server();
    world.server.as_mut().unwrap().kill();
    let problem = world.json(&["health"], 69);
    assert_eq!((&problem["status"], &problem["retryable"]), (&503.into(), &true.into()));
    let world = World::embedded();
    std::fs::write(world.data(), "not a folder").unwrap();
    let said = world.dlock(&["health"]);
    assert_eq!((said.code, said.out.as_str()), (Some(69), ""), "{said:?}");
}
