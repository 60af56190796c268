//! Many of them: renewals still get through (C09, C35, trap 45).

use core::time::Duration;

use crate::support::{Server, config};

const DRAIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn c35_trickling_sockets_do_not_keep_others_from_renewing() {
    let server = Server::start(config(), DRAIN).await;
    let mut crowd = Vec::new();
    for _ in 0..300 {
        let mut client = server.connect().await;
        client.write(b"P").await;
        crowd.push(client);
    }
    server.renews().await;
    for client in &mut crowd {
        client.write(b"O").await;
    }
    server.renews().await;
}

#[tokio::test]
async fn c35_when_every_place_is_taken_slow_heads_make_room() {
    let mut config = config();
    config.max_connections = 2;
    config.header_read_timeout = Duration::from_millis(100);
    let server = Server::start(config, DRAIN).await;
    let mut crowd = Vec::new();
    for _ in 0..8 {
        let mut client = server.connect().await;
        client.write(b"GET /").await;
        crowd.push(client);
    }
    server.renews().await;
}

#[tokio::test]
async fn c09_waiters_leave_room_for_holders() {
    let mut config = config();
    config.max_connections = 4;
    let mut server = Server::start(config, DRAIN).await;
    let mut waiters = Vec::new();
    for _ in 0..3 {
        let mut client = server.connect().await;
        client.waits().await;
        server.sees_start().await;
        waiters.push(client);
    }
    let mut refused = server.connect().await;
    refused.waits().await;
    let (status, problem) = refused.answer().await;
    assert_eq!((status, &problem["limit"]), (429, &"http.max_connections".into()));
    drop(refused);
    server.renews().await;

    // Whoever leaves makes room, and the others were not disturbed.
    drop(waiters.pop());
    server.sees_drop().await;
    let mut next = server.connect().await;
    next.waits().await;
    server.sees_start().await;
}
