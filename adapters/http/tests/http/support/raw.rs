//! A server on a port of its own, and clients that write bytes.

use core::{future::Future, time::Duration};
use std::{net::SocketAddr, sync::Arc};

use dlock_http::HttpConfig;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{SECRET, Stubborn, TestClock, service::Event};

/// Far longer than anything here takes: a test that hangs fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.unwrap()
}

/// A running server over a [`Stubborn`] service.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) events: UnboundedReceiver<Event>,
    /// Ends the service's waits.
    pub(crate) draining: CancellationToken,
    /// Stops the server.
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(config: HttpConfig, drain: Duration) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let draining = CancellationToken::new();
        let service = Stubborn { events: sender, draining: draining.clone() };
        let router =
            dlock_http::router(Arc::new(service), Arc::new(TestClock::default()), config.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let running =
            tokio::spawn(dlock_http::serve(listener, router, config, shutdown.clone(), drain));
        Self { address, events, draining, shutdown, running }
    }

    pub(crate) async fn connect(&self) -> Raw {
        Raw(soon(TcpStream::connect(self.address)).await.unwrap())
    }

    /// Asserts what happens next to an acquire.
    pub(crate) async fn sees_start(&mut self) {
        assert_eq!(soon(self.events.recv()).await, Some(Event::Started));
    }
    pub(crate) async fn sees_drop(&mut self) {
        assert_eq!(soon(self.events.recv()).await, Some(Event::Dropped));
    }

    /// Asserts that a holder can renew.
    pub(crate) async fn renews(&self) {
        let mut client = self.connect().await;
        let body = format!(r#"{{"name":"k","fencing_token":7,"session_id":"{SECRET}"}}"#);
        client.post("/v1/locks/renew", &body).await;
        assert_eq!(client.answer().await.0, 200);
    }
}

/// A client's connection.
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        soon(self.0.write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn get(&mut self, target: &str) {
        self.write(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await;
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.write(format!("{head}{body}").as_bytes()).await;
    }

    /// Begins an acquire that waits.
    pub(crate) async fn waits(&mut self) {
        let body = format!(r#"{{"name":"k","session_id":"{SECRET}","max_wait_ms":3600000}}"#);
        self.post("/v1/locks/acquire", &body).await;
    }

    /// The next answer: status and body (`Null` if it is empty).
    pub(crate) async fn answer(&mut self) -> (u16, Value) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(soon(self.0.read_u8()).await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |text| text.parse().unwrap())];
        soon(self.0.read_exact(&mut body)).await.unwrap();
        let body =
            if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }

    /// Asserts that the server closes the connection and says nothing more.
    pub(crate) async fn is_closed(&mut self) {
        let mut rest = Vec::new();
        // A reset is as good an end as any.
        let _ = soon(self.0.read_to_end(&mut rest)).await;
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}
