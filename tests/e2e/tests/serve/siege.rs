//! Thousands of clients that never come to the end of their requests (C35), and a stop in the
//! middle of it (trap 42).

use std::{
    collections::BTreeMap,
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use dlock_e2e::{
    client::{Client, NoReply, is_problem},
    crowd::{Crowd, allow_descriptors},
    descriptors, eventually,
    raw::Raw,
    signal,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{ACQUIRE, LONG, RELEASE, RENEW, World, acquire, all_held, naming, token, wanting};

const CROWD: usize = 2_000;
const HOLDERS: usize = 10;
const WAITERS: usize = 100;

/// No renewal may take this long: only there to tell an answer from none.
const PATIENCE: Duration = Duration::from_secs(20);

fn besieged(options: &[&str]) -> (World, Crowd) {
    allow_descriptors(CROWD as u64 + 1_000);
    let world = World::with(options, &[]);
    let crowd = Crowd::gather(world.address(), CROWD);
    let pid = world.server.pid();
    eventually("each has its connection", || descriptors(pid) > CROWD);
    (world, crowd)
}

#[test]
fn c35_two_thousand_trickling_sockets_do_not_keep_others_from_renewing() {
    let (world, crowd) = besieged(&[]);
    let client = world.client();
    let grants: Vec<_> =
        (0..HOLDERS).map(|n| acquire(&client, &format!("k{n}"), "a", 10_000)).collect();
    let (first, pid) = (crowd.rounds(), world.server.pid());
    thread::scope(|scope| {
        for (nth, grant) in grants.iter().enumerate() {
            let (crowd, address) = (&crowd, world.address());
            // Those that keep a connection, and those that need a new one for each call.
            let kept = Client::pooled(address, PATIENCE);
            let client = if nth % 2 == 0 { kept } else { Client::new(address) };
            scope.spawn(move || {
                let mut renewed = 0;
                while crowd.rounds() < first + 10 || renewed < 50 {
                    assert_eq!(token(&client.call(RENEW, &naming(grant), 200)), token(grant));
                    renewed += 1;
                }
            });
        }
    });
    eventually("they are all there still", || descriptors(pid) > CROWD);
    for grant in &grants {
        assert_eq!(client.call(RELEASE, &naming(grant), 200)["released"], true);
    }
}

#[test]
fn c35_a_burst_of_clients_finds_room_while_the_server_is_busy() {
    let world = World::new();
    let client = world.client();
    let grant = acquire(&client, "k", "a", LONG);
    let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let burst = allowed.trim().parse::<usize>().unwrap().min(1_000);
    // As busy as can be: it accepts nothing. Who finds no room would get no answer either, and
    // try again a second later.
    let pid = world.server.pid();
    signal(pid, Signal::STOP);
    let connect = |_| TcpStream::connect_timeout(&world.address(), PATIENCE);
    let connected: Vec<_> = (0..burst).map_while(|n| connect(n).ok()).collect();
    signal(pid, Signal::CONT);
    assert_eq!(connected.len(), burst);
    client.call(RENEW, &naming(&grant), 200);
}

/// Renews until nobody listens any more. Until a stop was asked for, everything is answered 200;
/// afterwards it may also meet a connection that ends, but never silence.
fn keep_renewing(client: &Client, grant: &Value, asked: &AtomicBool) -> u64 {
    let mut renewed = 0;
    loop {
        let reply = client.post(RENEW, &naming(grant));
        match reply {
            Ok(reply) => assert_eq!(token(&reply.expect(200)), token(grant)),
            Err(error) => {
                assert!(asked.load(Ordering::SeqCst), "before the stop: {error}");
                match error {
                    NoReply::Refused => return renewed,
                    NoReply::Unknown(why) => assert!(!why.contains("timeout"), "{why}"),
                }
            }
        }
        renewed += 1;
    }
}

/// Takes one lock after the other until nobody listens any more: what it was given.
fn keep_acquiring(client: &Client, who: usize) -> BTreeMap<String, u64> {
    let mut told = BTreeMap::new();
    for n in 0.. {
        let name = format!("taken/{who}/{n}");
        match client.post(ACQUIRE, &wanting(&name, "c", LONG, 0)) {
            Ok(reply) if reply.status == 503 => assert!(is_problem(&reply.body, "draining")),
            Ok(reply) => drop(told.insert(name, token(&reply.expect(200)))),
            Err(NoReply::Refused) => break,
            // Accepted by the system and never by the server.
            Err(NoReply::Unknown(why)) => assert!(!why.contains("timeout"), "{why}"),
        }
    }
    told
}

fn assert_draining(answer: &Value) {
    assert!(is_problem(answer, "draining"), "{answer}");
    assert_eq!((&answer["retryable"], &answer["applied"]), (&json!(true), &json!("no")));
}

#[test]
fn trap42_a_stop_under_siege_answers_everybody_and_grants_nothing_more() {
    let (mut world, crowd) = besieged(&["--drain", "6s"]);
    let (client, address) = (world.client(), world.address());
    let grants: Vec<_> =
        (0..HOLDERS).map(|n| acquire(&client, &format!("held/{n}"), "a", LONG)).collect();
    let mut waiters: Vec<_> = (0..WAITERS)
        .map(|n| {
            let name = format!("held/{}", n % HOLDERS);
            Raw::post(address, ACQUIRE, &wanting(&name, "b", LONG, LONG))
        })
        .collect();
    eventually("all wait", || {
        (0..HOLDERS).map(|n| client.waiters(&format!("held/{n}"))).sum::<u64>() == WAITERS as u64
    });
    // Calls that the stop meets in the middle.
    let mut renewals: Vec<_> =
        grants.iter().map(|grant| Raw::under_way(address, RENEW, &naming(grant))).collect();
    let (given_back, kept) = grants.split_at(HOLDERS / 2);
    let mut releases: Vec<_> =
        given_back.iter().map(|grant| Raw::under_way(address, RELEASE, &naming(grant))).collect();
    let late = |n: usize| wanting(&format!("late/{n}"), "c", LONG, LONG);
    let mut acquires: Vec<_> =
        (0..HOLDERS).map(|n| Raw::under_way(address, ACQUIRE, &late(n))).collect();

    let asked = AtomicBool::new(false);
    let told = thread::scope(|scope| {
        for grant in kept {
            let (client, asked) = (Client::pooled(address, PATIENCE), &asked);
            scope.spawn(move || assert!(keep_renewing(&client, grant, asked) > 0));
        }
        let taking: Vec<_> = (0..2)
            .map(|who| scope.spawn(move || keep_acquiring(&Client::new(address), who)))
            .collect();
        eventually("all are at it", || {
            (0..2).all(|who| client.inspect(&format!("taken/{who}/0")).is_some())
        });

        asked.store(true, Ordering::SeqCst);
        world.server.ask_to_stop();
        for waiter in &mut waiters {
            assert_draining(&waiter.answer().unwrap().expect(503));
            assert_eq!(waiter.answer(), None, "the connection ends");
        }
        // The end has begun, and these come to theirs: who holds is served, who wants is not.
        for (renewal, grant) in renewals.iter_mut().zip(&grants) {
            renewal.finish();
            assert_eq!(token(&renewal.answer().unwrap().expect(200)), token(grant));
        }
        for release in &mut releases {
            release.finish();
            let released = release.answer().unwrap().expect(200);
            assert_eq!(released, json!({"released": true, "current": "none"}));
        }
        for acquire in &mut acquires {
            acquire.finish();
            assert_draining(&acquire.answer().unwrap().expect(503));
        }
        let told: Vec<_> = taking.into_iter().map(|one| one.join().unwrap()).collect();
        told.into_iter().flatten().collect::<BTreeMap<_, _>>()
    });
    // The crowd is at it to the end.
    assert_eq!(world.server.ended().code(), Some(0), "{}", world.server.log());
    assert!(!world.server.log().contains("did not end;"), "{}", world.server.log());
    drop(crowd);

    world.server.restart();
    let still = kept.iter().map(|grant| (grant["name"].as_str().unwrap().to_owned(), token(grant)));
    let expected: BTreeMap<_, _> = still.chain(told).collect();
    let held = all_held(&client);
    assert_eq!(held, expected, "what somebody was told of, and nothing else");
    let highest = held.into_values().chain(grants.iter().map(token)).max().unwrap();
    for grant in given_back {
        let again = acquire(&client, grant["name"].as_str().unwrap(), "d", LONG);
        assert!(token(&again) > highest);
    }
}
