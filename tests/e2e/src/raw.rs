//! A client that writes bytes on a socket: it can hang up whenever it likes, and read its answer
//! late or never.

#![expect(clippy::panic, clippy::expect_used, reason = "only tests call it")]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

use crate::client::{Reply, json};

/// How long an answer is waited for: only there to end a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// One connection with one request on it. Dropping it hangs up, whatever is unread.
#[derive(Debug)]
pub struct Raw(BufReader<TcpStream>);

impl Raw {
    /// Connects and sends nothing.
    ///
    /// # Panics
    /// When nobody listens.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out can be set");
        stream.set_nodelay(true).expect("delay can be turned off");
        Self(BufReader::new(stream))
    }

    /// Connects and sends a whole `POST`; its answer is left on the socket.
    ///
    /// # Panics
    /// When nobody listens.
    #[must_use]
    pub fn post(address: SocketAddr, path: &str, body: &Value) -> Self {
        let mut raw = Self::connect(address);
        raw.write(&posted(address, path, body));
        raw
    }

    /// Connects and sends a `POST` but for its last byte, and only returns when its route reads
    /// the body: the call is under way, and ends with [`finish`](Self::finish).
    ///
    /// # Panics
    /// When nobody listens, or no route wants the body.
    #[must_use]
    pub fn under_way(address: SocketAddr, path: &str, body: &Value) -> Self {
        let mut raw = Self::connect(address);
        let request = posted(address, path, body);
        let (head, body) = request.split_once("\r\n\r\n").expect("it has a head");
        raw.write(&format!("{head}\r\nexpect: 100-continue\r\n\r\n"));
        for expected in ["HTTP/1.1 100 Continue", ""] {
            let mut line = String::new();
            raw.0.read_line(&mut line).expect("the server goes on");
            assert_eq!(line.trim_end(), expected);
        }
        raw.write(&body[..body.len() - 1]);
        raw
    }

    /// Sends the last byte of a request that is [`under_way`](Self::under_way).
    ///
    /// # Panics
    /// When the other side has gone.
    pub fn finish(&mut self) {
        self.write("}");
    }

    /// Sends text as it is.
    ///
    /// # Panics
    /// When the other side has gone.
    pub fn write(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).expect("the server reads");
    }

    /// Sends bytes as they are; whether the other side still took them.
    pub fn try_write(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).is_ok()
    }

    /// How long [`answer`](Self::answer) waits, a minute at first.
    ///
    /// # Panics
    /// When it is zero.
    pub fn be_patient_for(&mut self, patience: Duration) {
        self.0.get_mut().set_read_timeout(Some(patience)).expect("a time-out can be set");
    }

    /// Whether something to read comes before the patience ends, or has come.
    #[must_use]
    pub fn hears(&mut self) -> bool {
        self.0.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
    }

    /// Reads one answer that has a `content-length`; `None` if the other side hung up before it.
    ///
    /// # Panics
    /// When what comes is no such answer, or nothing comes for a minute.
    pub fn answer(&mut self) -> Option<Reply> {
        self.answer_with_head().map(|(_, reply)| reply)
    }

    /// [`answer`](Self::answer) behind the lines of its head, in small letters.
    ///
    /// # Panics
    /// As there.
    pub fn answer_with_head(&mut self) -> Option<(Vec<String>, Reply)> {
        let (mut status, mut length, mut head) = (None, 0, Vec::new());
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line) {
                Ok(0) if status.is_none() => return None,
                Ok(1..) => {}
                other => panic!("the answer ends in its head: {other:?}"),
            }
            let line = line.trim_end().to_ascii_lowercase();
            if status.is_none() {
                status = line.split(' ').nth(1).and_then(|number| number.parse().ok());
                assert!(status.is_some(), "no status line: {line}");
            } else if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().expect("a length is a number");
            } else if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("the body is whole");
        let body = json(String::from_utf8(body).expect("the body is text"));
        status.map(|status| (head, Reply { status, body }))
    }
}

fn posted(address: SocketAddr, path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
