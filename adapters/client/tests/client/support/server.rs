//! A server without a mind of its own: every request is handed to the test, which answers it.

use std::net::SocketAddr;

use dlock_client::ServerUrl;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver},
};

use super::soon;

/// A listening server.
pub(crate) struct Server {
    pub(crate) url: ServerUrl,
    asked: UnboundedReceiver<Asked>,
}

/// A request, and the connection on which it is to be answered.
pub(crate) struct Asked {
    /// Method and path.
    pub(crate) call: String,
    pub(crate) query: Option<String>,
    pub(crate) head: String,
    pub(crate) body: Value,
    /// In bytes.
    pub(crate) length: usize,
    stream: TcpStream,
}

fn url(address: SocketAddr) -> ServerUrl {
    ServerUrl::parse(&format!("http://{address}")).unwrap()
}

/// An address at which nobody listens.
pub(crate) async fn nobody() -> ServerUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url(listener.local_addr().unwrap())
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url(listener.local_addr().unwrap());
        let (sender, asked) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Some(asked) = Asked::read(stream).await {
                        // A test that is over asks no more.
                        let _ = sender.send(asked);
                    }
                });
            }
        });
        Self { url, asked }
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Asked {
        soon(self.asked.recv()).await.unwrap()
    }

    /// The next request, which must be this call.
    #[track_caller]
    pub(crate) fn sees<'a>(&'a mut self, call: &'a str) -> impl Future<Output = Asked> + 'a {
        let from = std::panic::Location::caller();
        async move {
            let asked = self.next().await;
            assert_eq!(asked.call, call, "at {from}");
            asked
        }
    }

    /// Asserts that nothing was asked that the test has not seen.
    pub(crate) fn is_quiet(&mut self) {
        if let Ok(asked) = self.asked.try_recv() {
            panic!("not expected: {} {}", asked.call, asked.body);
        }
    }
}

impl Asked {
    /// Reads a request; `None` if the connection ends first.
    pub(crate) async fn read(mut stream: TcpStream) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.ok()?;
        let body =
            if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        Some(Self { call: format!("{method} {path}"), query, head, body, length, stream })
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap()
    }

    /// Answers with these bytes and closes the connection.
    pub(crate) async fn raw(mut self, bytes: &[u8]) {
        self.write(bytes).await;
        // The client reads to the end before the connection goes.
        let _ = self.stream.shutdown().await;
    }

    /// Writes as long as the client reads.
    pub(crate) async fn endless(mut self, head: &str, again: &[u8]) {
        self.write(head.as_bytes()).await;
        let writing = async { while self.stream.write_all(again).await.is_ok() {} };
        soon(writing).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        soon(self.stream.write_all(bytes)).await.unwrap();
    }

    /// Answers: JSON, or a problem document if it is an error.
    pub(crate) async fn reply(self, status: u16, body: Value) {
        self.reply_with(status, "connection: close\r\n", body).await;
    }

    pub(crate) async fn reply_with(self, status: u16, headers: &str, body: Value) {
        self.raw(&answer(status, headers, &body)).await;
    }

    /// Answers and waits for the next request on the same connection.
    pub(crate) async fn reply_and_listen(mut self, status: u16, body: Value) -> Self {
        self.write(&answer(status, "", &body)).await;
        soon(Self::read(self.stream)).await.unwrap()
    }

    /// Answers, and closes the connection once the client may have put it away for another call.
    pub(crate) async fn refuse(self, status: u16, kind: &str) {
        self.reply(status, super::problem(status, kind)).await;
    }

    /// Closes the connection without an answer: the request arrived, its reply is swallowed.
    pub(crate) fn swallow(self) {
        drop(self.stream);
    }

    /// Waits until the client hangs up.
    pub(crate) async fn hangs_up(mut self) {
        let mut rest = Vec::new();
        // A reset is as good an end as any.
        let _ = soon(self.stream.read_to_end(&mut rest)).await;
        assert_eq!(rest, b"", "the client says no more");
    }
}

fn answer(status: u16, headers: &str, body: &Value) -> Vec<u8> {
    let media = if status < 400 { "application/json" } else { "application/problem+json" };
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {media}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}
