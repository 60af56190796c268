//! A server that gives one answer to everything.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

/// Its address; it answers until the test ends.
pub(crate) fn answering(status: u16, body: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let media = if status < 400 { "application/json" } else { "application/problem+json" };
    let answer = format!(
        "HTTP/1.1 {status} Odd\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A caller that hangs up early is its own business.
            let _ = serve(stream, &answer);
        }
    });
    address
}

fn serve(stream: TcpStream, answer: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    reader.get_mut().write_all(answer.as_bytes())
}
