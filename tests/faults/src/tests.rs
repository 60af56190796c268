//! Each fault, before a server that echoes. Whatever is waited for is an event.

use std::{io::ErrorKind, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    Direction::{ToClient, ToServer},
    Proxy,
};

/// Long enough that nothing in a test can wait for it.
const AGES: Duration = Duration::from_secs(3_600);

/// A server that sends back what it gets, and says how many bytes that were.
struct Echo {
    addr: std::net::SocketAddr,
    seen: watch::Receiver<usize>,
    ended: watch::Receiver<usize>,
}

async fn echo() -> Echo {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (seen, watch_seen) = watch::channel(0);
    let (ended, watch_ended) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            let (mut peer, _) = listener.accept().await.unwrap();
            let (seen, ended) = (seen.clone(), ended.clone());
            tokio::spawn(async move {
                let mut buffer = [0; 1_024];
                while let Ok(read @ 1..) = peer.read(&mut buffer).await {
                    seen.send_modify(|seen| *seen += read);
                    if peer.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
                ended.send_modify(|ended| *ended += 1);
            });
        }
    });
    Echo { addr, seen: watch_seen, ended: watch_ended }
}

async fn world() -> (Echo, Proxy, TcpStream) {
    let echo = echo().await;
    let proxy = Proxy::start(echo.addr).unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(said(&mut client, b"hello").await, b"hello");
    (echo, proxy, client)
}

/// Sends, and receives as much.
async fn said(client: &mut TcpStream, text: &[u8]) -> Vec<u8> {
    client.write_all(text).await.unwrap();
    heard(client, text.len()).await
}

/// The same on a connection of its own.
async fn said_by_another(proxy: &Proxy, text: &[u8]) -> Vec<u8> {
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    said(&mut client, text).await
}

async fn heard(client: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut reply = vec![0; length];
    client.read_exact(&mut reply).await.unwrap();
    reply
}

fn nothing_to_read(client: &TcpStream) -> bool {
    let nothing = client.try_read(&mut [0; 16]);
    nothing.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test]
async fn it_passes_bytes_and_ends_and_counts_them() {
    let (mut echo, proxy, mut client) = world().await;
    let large = vec![7; 100_000];
    let (mut read, mut write) = client.split();
    let send = async {
        write.write_all(&large).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut back = Vec::new();
    let (received, ()) = tokio::join!(read.read_to_end(&mut back), send);
    assert_eq!(received.unwrap(), large.len());
    assert_eq!(back, large);
    echo.ended.wait_for(|ended| *ended == 1).await.unwrap();
    let counts = proxy.counted(|counts| counts.ended == 1).await;
    assert_eq!((counts.connections, counts.to_server, counts.to_client), (1, 100_005, 100_005));
    assert_eq!((counts.swallowed_to_server, counts.swallowed_to_client), (0, 0));
}

#[tokio::test]
async fn a_hole_to_the_server_hides_requests_and_the_connection_stays() {
    let (echo, proxy, mut client) = world().await;
    proxy.blackhole(ToServer);
    client.write_all(b"lost").await.unwrap();
    proxy.counted(|counts| counts.swallowed_to_server == 4).await;
    assert_eq!(*echo.seen.borrow(), 5);
    assert!(nothing_to_read(&client));
    proxy.pass();
    assert_eq!(said(&mut client, b"again").await, b"again");
    assert_eq!(*echo.seen.borrow(), 10);
}

#[tokio::test]
async fn a_hole_to_the_client_hides_replies_and_the_servers_goodbye() {
    let (mut echo, proxy, mut client) = world().await;
    proxy.blackhole(ToClient);
    client.write_all(b"done").await.unwrap();
    proxy.counted(|counts| counts.swallowed_to_client == 4).await;
    assert_eq!(*echo.seen.borrow(), 9);
    client.shutdown().await.unwrap();
    echo.ended.wait_for(|ended| *ended == 1).await.unwrap();
    assert!(nothing_to_read(&client));
    proxy.pass();
    assert_eq!(client.read(&mut [0; 16]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_delay_holds_back_and_a_new_order_lets_go() {
    let (echo, proxy, mut client) = world().await;
    proxy.delay(ToServer, AGES);
    client.write_all(b"later").await.unwrap();
    // Another connection's bytes are held back too, and its acceptance is not.
    let mut other = TcpStream::connect(proxy.addr()).await.unwrap();
    other.write_all(b"later").await.unwrap();
    proxy.counted(|counts| counts.connections == 2).await;
    assert_eq!(*echo.seen.borrow(), 5);
    proxy.delay(ToServer, Duration::from_millis(1));
    assert_eq!(heard(&mut client, 5).await, b"later");
    assert_eq!(heard(&mut other, 5).await, b"later");
}

#[tokio::test]
async fn a_trickle_gives_so_many_bytes_at_once() {
    let (mut echo, proxy, mut client) = world().await;
    proxy.trickle(ToServer, 2, AGES);
    client.write_all(b"abcdef").await.unwrap();
    proxy.counted(|counts| counts.to_server == 7).await;
    echo.seen.wait_for(|seen| *seen == 7).await.unwrap();
    assert_eq!(heard(&mut client, 2).await, b"ab");
    // An order for the other direction does not hurry it.
    proxy.delay(ToClient, Duration::ZERO);
    assert_eq!(said_by_another(&proxy, b"x").await, b"x");
    assert_eq!(proxy.counts().to_server, 8);
    proxy.trickle(ToServer, 3, Duration::from_millis(1));
    assert_eq!(heard(&mut client, 4).await, b"cdef");
}

#[tokio::test]
async fn a_reset_reaches_both_sides_and_new_connections_are_spared() {
    let (mut echo, proxy, mut client) = world().await;
    proxy.reset_all();
    let broken = client.read(&mut [0; 16]).await.unwrap_err();
    assert_eq!(broken.kind(), ErrorKind::ConnectionReset);
    echo.ended.wait_for(|ended| *ended == 1).await.unwrap();
    let mut next = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(said(&mut next, b"fresh").await, b"fresh");
}

#[tokio::test]
async fn a_cut_is_silent_for_old_and_new_connections() {
    let (echo, proxy, mut client) = world().await;
    proxy.cut();
    let mut late = TcpStream::connect(proxy.addr()).await.unwrap();
    client.write_all(b"lost").await.unwrap();
    late.write_all(b"lost").await.unwrap();
    proxy.counted(|counts| counts.swallowed_to_server == 8).await;
    assert!(nothing_to_read(&client) && nothing_to_read(&late));
    proxy.heal().await.unwrap();
    assert_eq!(said(&mut client, b"back").await, b"back");
    // What came in the dark stays there.
    late.write_all(b"lost").await.unwrap();
    proxy.counted(|counts| counts.swallowed_to_server == 12).await;
    assert_eq!(*echo.seen.borrow(), 9);
}

#[tokio::test]
async fn a_swallowed_reply_belongs_to_a_request_that_arrived() {
    let (mut echo, proxy, mut client) = world().await;
    proxy.swallow_next_reply();
    let mut other = TcpStream::connect(proxy.addr()).await.unwrap();
    client.write_all(b"paid").await.unwrap();
    let counts = proxy.counted(|counts| counts.swallowed_to_client == 4).await;
    assert_eq!(counts.replies_swallowed, 1);
    echo.seen.wait_for(|seen| *seen == 9).await.unwrap();
    // One order, one connection; and that one stays open and dumb, healed or not.
    assert_eq!(said(&mut other, b"next").await, b"next");
    proxy.heal().await.unwrap();
    client.write_all(b"well?").await.unwrap();
    proxy.counted(|counts| counts.swallowed_to_client == 9).await;
    assert!(nothing_to_read(&client));
    proxy.reset_all();
    assert_eq!(client.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn refusal_is_real_keeps_the_port_and_spares_open_connections() {
    let (_echo, proxy, mut client) = world().await;
    for _ in 0..3 {
        proxy.refuse().await.unwrap();
        let refused = TcpStream::connect(proxy.addr()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(said(&mut client, b"still").await, b"still");
        proxy.heal().await.unwrap();
        let mut next = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(said(&mut next, b"open").await, b"open");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_resets_and_may_come_later() {
    let place = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(place.local_addr().unwrap()).unwrap();
    let addr = place.local_addr().unwrap();
    drop(place);
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(client.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let place = TcpListener::bind(addr).await.unwrap();
    let _client = TcpStream::connect(proxy.addr()).await.unwrap();
    place.accept().await.unwrap();
}

#[tokio::test]
async fn dropping_the_proxy_ends_everything() {
    let (mut echo, proxy, mut client) = world().await;
    let addr = proxy.addr();
    proxy.cut();
    drop(proxy);
    assert_eq!(client.read(&mut [0; 4]).await.unwrap_or(0), 0);
    echo.ended.wait_for(|ended| *ended == 1).await.unwrap();
    let gone = TcpStream::connect(addr).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::ConnectionRefused);
}
