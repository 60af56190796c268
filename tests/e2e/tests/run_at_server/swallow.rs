//! A proxy that passes every call on, and swallows the answers to some.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

/// Where it listens, and how many answers it has swallowed.
pub(crate) struct Swallow {
    pub(crate) address: SocketAddr,
    pub(crate) swallowed: Arc<AtomicU32>,
}

/// Swallows the answer of the first call on this path, which the server has answered by then, and
/// hangs up.
pub(crate) fn the_first_answer_of(path: &'static str, server: SocketAddr) -> Swallow {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let swallowed = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&swallowed);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            // Either side may hang up whenever it likes.
            thread::spawn(move || drop(pass_on(client, server, path, &count)));
        }
    });
    Swallow { address, swallowed }
}

fn pass_on(
    client: TcpStream,
    server: SocketAddr,
    path: &str,
    swallowed: &AtomicU32,
) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    let mut requests = BufReader::new(client.try_clone()?);
    let mut answers = BufReader::new(server.try_clone()?);
    let (mut client, mut server) = (client, server);
    while let Some(request) = message(&mut requests)? {
        server.write_all(&request)?;
        let Some(answer) = message(&mut answers)? else { break };
        let asked = request.starts_with(format!("POST {path} ").as_bytes());
        if asked && swallowed.fetch_add(1, Ordering::SeqCst) == 0 {
            break;
        }
        client.write_all(&answer)?;
    }
    client.shutdown(Shutdown::Both)
}

/// One request or answer, whole; `None` at the end.
fn message(from: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    loop {
        let start = bytes.len();
        if from.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&bytes[start..]).trim().to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let head = bytes.len();
    bytes.resize(head + length, 0);
    from.read_exact(&mut bytes[head..])?;
    Ok(Some(bytes))
}
