//! `SIGTERM`: waiting calls are answered, nothing is granted any more, and it ends.

use std::thread;

use dlock_e2e::{
    client::{NoReply, Reply, is_problem},
    eventually,
    raw::Raw,
    server::Server,
};
use serde_json::json;

use crate::{ACQUIRE, LONG, RELEASE, World, acquire, naming, token, wanting};

#[test]
fn a_stop_ends_long_polls_with_draining_and_grants_nothing() {
    let mut world = World::new();
    let client = world.client();
    let holder = acquire(&client, "k", "a", LONG);
    let mut waiters: Vec<_> = (1..=5)
        .map(|nth| {
            let waiter = Raw::post(world.address(), ACQUIRE, &wanting("k", "b", LONG, LONG));
            eventually("it waits", || client.waiters("k") == nth);
            waiter
        })
        .collect();
    let status = world.server.terminate();
    assert_eq!(status.code(), Some(0), "{}", world.server.log());
    for waiter in &mut waiters {
        let answer = waiter.answer().unwrap().expect(503);
        assert!(is_problem(&answer, "draining"), "{answer}");
        assert_eq!((&answer["retryable"], &answer["applied"]), (&json!(true), &json!("no")));
        assert_eq!(waiter.answer(), None, "the connection ends");
    }
    world.server.restart();
    assert_eq!(client.inspect("k").map(|info| token(&info)), Some(token(&holder)));
    assert_eq!(client.call(RELEASE, &naming(&holder), 200)["released"], true);
    assert_eq!(client.inspect("k"), None, "no waiter was granted behind everybody's back");
}

#[test]
fn what_is_refused_while_stopping_is_not_held_afterwards() {
    let mut world = World::new();
    let client = world.client();
    // Each asks for one lock after the other until nobody listens any more.
    let asking = |client: usize| {
        let connection = world.client();
        thread::spawn(move || {
            let mut answers = Vec::new();
            for n in 0.. {
                let name = format!("{client}/{n}");
                match connection.post(ACQUIRE, &wanting(&name, "a", LONG, 0)) {
                    Ok(reply) => answers.push((name, reply)),
                    Err(NoReply::Refused) => return answers,
                    // Accepted by the system and never by the server.
                    Err(NoReply::Unknown(_)) => {}
                }
            }
            answers
        })
    };
    let clients: Vec<_> = (0..4).map(asking).collect();
    eventually("all are at it", || (0..4).all(|n| client.inspect(&format!("{n}/0")).is_some()));
    let status = world.server.terminate();
    assert_eq!(status.code(), Some(0), "{}", world.server.log());
    let answers: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    world.server.restart();
    for (name, Reply { status, body }) in answers {
        match status {
            200 => assert_eq!(token(&client.inspect(&name).unwrap()), token(&body), "{name}"),
            503 => {
                assert!(is_problem(&body, "draining"), "{body}");
                assert_eq!(body["applied"], "no");
                assert_eq!(client.inspect(&name), None, "{name}");
            }
            other => panic!("{other} {body}"),
        }
    }
}

#[test]
fn a_client_that_never_finishes_its_request_does_not_keep_the_server() {
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start(place.path(), &["--drain", "200ms"]);
    let mut idle = Raw::connect(server.address());
    let mut slow = Raw::connect(server.address());
    slow.write("POST /v1/locks/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{");
    server.client().call(ACQUIRE, &wanting("k", "a", LONG, 0), 200);
    assert_eq!(server.terminate().code(), Some(0), "{}", server.log());
    assert_eq!(idle.answer(), None);
    drop(slow);
}
