//! Stopping: in bounded time, with an answer for who waits (trap 42).

use core::time::Duration;

use tokio::net::TcpStream;

use crate::support::{Server, config, soon};

#[tokio::test]
async fn long_polls_get_their_answer_and_the_server_ends() {
    let mut config = config();
    // Nothing but the shutdown ends an idle connection here.
    config.header_read_timeout = Duration::from_secs(600);
    let mut server = Server::start(config, Duration::from_secs(600)).await;
    let mut idle = server.connect().await;
    idle.get("/livez").await;
    assert_eq!(idle.answer().await.0, 200);
    let mut silent = server.connect().await;
    let mut waiter = server.connect().await;
    waiter.waits().await;
    server.sees_start().await;

    server.shutdown.cancel();
    idle.is_closed().await;
    silent.is_closed().await;
    server.draining.cancel();
    let (status, problem) = waiter.answer().await;
    assert_eq!((status, &problem["type"]), (503, &"urn:dlock:problem:draining".into()));
    assert_eq!(problem["retryable"], true);
    waiter.is_closed().await;

    soon(&mut server.running).await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_does_not_end_is_dropped_when_the_time_is_up() {
    let mut server = Server::start(config(), Duration::from_millis(50)).await;
    let mut waiter = server.connect().await;
    waiter.waits().await;
    server.sees_start().await;
    let mut slow = server.connect().await;
    slow.write(b"GET /livez HT").await;

    server.shutdown.cancel();
    server.sees_drop().await;
    waiter.is_closed().await;
    slow.is_closed().await;
    soon(&mut server.running).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_full_stops_too() {
    let mut config = config();
    config.max_connections = 1;
    let mut server = Server::start(config, Duration::from_millis(50)).await;
    let mut waiter = server.connect().await;
    waiter.waits().await;
    server.sees_start().await;
    let _queued = server.connect().await;
    server.shutdown.cancel();
    soon(&mut server.running).await.unwrap();
    server.sees_drop().await;
}

#[tokio::test]
async fn dropping_the_server_drops_its_connections() {
    let mut server = Server::start(config(), Duration::from_secs(600)).await;
    let mut waiter = server.connect().await;
    waiter.waits().await;
    server.sees_start().await;
    server.running.abort();
    server.sees_drop().await;
    waiter.is_closed().await;
}
