//! C07: clients whose own time-out is the wait that they ask for.

use std::{thread, time::Duration};

use dlock_e2e::{
    client::Client,
    eventually,
    load::{Chance, Clock},
    raw::Raw,
};
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, all_held, naming, token, wanting};

const LANES: usize = 40;
const ROUNDS: usize = 25;

/// What the clients ask for, in milliseconds, and how long they wait themselves.
const MAX_WAIT: u64 = 150;

/// The lifetime of what nobody comes back for, in milliseconds.
const TTL: u64 = 1_000;

const MILLISECOND: u64 = 1_000_000;

/// Sleeps until this many nanoseconds of a clock have passed.
fn sleep_until(clock: &Clock, moment: u64) {
    thread::sleep(Duration::from_nanos(moment.saturating_sub(clock.now().0)));
}

/// How one arrival ends, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Answered,
    Vanished,
}

/// One client: it waits, its lock is released around the moment when it gives up, and it hangs up.
fn arrive(world: &World, name: &str, chance: &mut Chance) -> End {
    let (client, clock) = (world.client(), Clock::new());
    let holder = acquire(&client, name, "a", LONG);
    // The service chose the attempt's id; or the client did, and comes back for it, or does not.
    let (chosen, comes_back) = (chance.once_in(2), chance.once_in(2));
    let mut body = wanting(name, "b", if chosen && comes_back { LONG } else { TTL }, MAX_WAIT);
    if chosen {
        body["attempt_id"] = json!(format!("{:032x}", chance.id()));
    }
    let sent = clock.now().0;
    let mut waiter = Raw::post(world.address(), ACQUIRE, &body);
    sleep_until(&clock, sent + (MAX_WAIT - 70 + chance.below(80)) * MILLISECOND);
    let mut release = Raw::post(world.address(), RELEASE, &naming(&holder));
    // Some give up when their time is over, as the case has it, some right after the release.
    let gives_up = match chance.below(4) {
        0 => clock.now().0,
        1 => clock.now().0 + chance.below(10 * MILLISECOND),
        _ => sent + MAX_WAIT * MILLISECOND,
    };
    let left = gives_up.saturating_sub(clock.now().0);
    let heard = left > 0 && {
        waiter.be_patient_for(Duration::from_nanos(left));
        waiter.hears()
    };
    if heard {
        waiter.be_patient_for(Duration::from_secs(60));
        let answer = waiter.answer().unwrap();
        if answer.status == 200 {
            assert_eq!(client.call(RELEASE, &naming(&answer.body), 200)["released"], true);
        } else {
            answer.expect(409);
        }
    }
    drop(waiter);
    assert_eq!(release.answer().unwrap().expect(200)["released"], true);
    if chosen && comes_back && !heard {
        comes_for_its_grant(&client, &mut body);
    }
    if heard { End::Answered } else { End::Vanished }
}

/// Repeats the attempt: what it was granted is still there, and nobody else's.
fn comes_for_its_grant(client: &Client, body: &mut Value) {
    let seen = client.inspect(body["name"].as_str().unwrap());
    body["max_wait_ms"] = json!(0);
    let repeated = client.call(ACQUIRE, body, 200);
    if let Some(seen) = seen {
        assert_eq!(token(&repeated), token(&seen), "kept for the repeat");
    }
    assert_eq!(client.call(RELEASE, &naming(&repeated), 200)["released"], true);
}

#[test]
fn c07_a_thousand_clients_that_give_up_as_they_are_granted_leave_nothing_held() {
    let world = World::new();
    let client = world.client();
    let ends: Vec<_> = thread::scope(|scope| {
        let world = &world;
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| {
                scope.spawn(move || {
                    let mut chance = Chance::new(lane as u64);
                    let arrive = |n| arrive(world, &format!("{lane}/{n}"), &mut chance);
                    (0..ROUNDS).map(arrive).collect::<Vec<_>>()
                })
            })
            .collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    assert_eq!(ends.len(), 1_000);
    assert!(ends.contains(&End::Answered) && ends.contains(&End::Vanished));
    // Whatever is held still, because its answer had left before its client had, is on its last
    // lease, which nobody lengthens.
    let page = client.get("/v1/locks?limit=1000").unwrap().expect(200);
    for lock in page["locks"].as_array().unwrap() {
        assert!(lock["expires_in_ms"].as_u64().unwrap() <= TTL, "{lock}");
    }
    eventually("everything is free", || all_held(&client).is_empty());
    let metrics = client.get("/metrics").unwrap().expect(200);
    let metrics = metrics.as_str().unwrap();
    assert!(
        metrics.lines().any(|line| line.starts_with("dlock_lock_waiters") && line.ends_with(" 0")),
        "{metrics}"
    );
}

#[test]
fn c07_a_release_in_the_last_50_ms_of_a_wait_grants_nothing() {
    const LONGER: u64 = 2_000;
    let world = World::new();
    let checked: usize = thread::scope(|scope| {
        let world = &world;
        let one = |n: usize| {
            let (client, clock, name) = (world.client(), Clock::new(), format!("k{n}"));
            let holder = acquire(&client, &name, "a", LONG);
            let body = wanting(&name, "b", LONG, LONGER);
            let mut waiter = Raw::post(world.address(), ACQUIRE, &body);
            while client.waiters(&name) == 0 {
                assert!(clock.now().0 < LONGER * MILLISECOND, "it never waited");
            }
            // It came before it was seen: what is asked for now is in its last 50 ms, or later.
            sleep_until(&clock, clock.now().0 + (LONGER - 50) * MILLISECOND);
            assert_eq!(client.call(RELEASE, &naming(&holder), 200)["released"], true);
            waiter.answer().unwrap().expect(409);
            assert_eq!(client.inspect(&name), None);
        };
        let all: Vec<_> = (0..LANES).map(|n| scope.spawn(move || one(n))).collect();
        all.into_iter().map(|one| one.join().unwrap()).count()
    });
    assert_eq!(checked, LANES);
}
