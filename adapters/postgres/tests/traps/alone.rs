//! Statements whose transaction was not begun.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use dlock_conformance::{
    kit::{attempt, key, private},
    stores::{Direct, postgres_url},
};
use dlock_domain::Applied;
use dlock_ports::{InsertRequest, Intent};
use dlock_postgres::sql;
use tokio_postgres::types::{ToSql, Type};

use crate::kit::{Place, Raw, bytes, host_and_port, soon};

/// Runs a statement of ours by itself.
async fn alone(raw: &Raw, statement: &str, parameters: &[(&(dyn ToSql + Sync), Type)]) {
    let rows = raw.client.query_typed(statement, parameters).await;
    rows.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
}

/// What grants or takes away does neither where nothing before it was locked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_30_statements_that_rely_on_locks_do_nothing_alone() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let held = a.take(&key("k"), &private("worker")).await;
    let free = a.take(&key("free"), &private("worker")).await;
    assert!(a.release(&free).await);
    let sequence = "SELECT last_value FROM dlock_fencing_token_seq";
    let drawn = place.eye.number(sequence).await;

    let raw = place.raw().await;
    let (ns, k, id) = ("default", "k", vec![7_u8; 16]);
    let token = i64::try_from(held.token.get()).unwrap();
    let key_of = |name: &'static &str| -> [(&(dyn ToSql + Sync), Type); 2] {
        [(&"default", Type::TEXT), (name, Type::TEXT)]
    };
    let grant: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&id, Type::BYTEA),
        (&id, Type::BYTEA),
        (&true, Type::BOOL),
        (&"thief", Type::TEXT),
        (&60_000_i64, Type::INT8),
        (&id, Type::BYTEA),
        (&true, Type::BOOL),
    ];
    alone(&raw, sql::GRANT, &[&key_of(&"free")[..], &grant].concat()).await;
    let revoke: [(&(dyn ToSql + Sync), Type); 3] =
        [(&None::<i64>, Type::INT8), (&"ops", Type::TEXT), (&"why", Type::TEXT)];
    alone(&raw, sql::REVOKE, &[&key_of(&"k")[..], &revoke].concat()).await;
    let of_it: (&(dyn ToSql + Sync), Type) = (&token, Type::INT8);
    alone(&raw, sql::RELEASE, &[&key_of(&"k")[..], &[of_it]].concat()).await;
    let row = format!("SELECT encode(attempt, 'hex') FROM dlock_locks WHERE name = '{k}'");
    let made = place.eye.texts(&row).await.remove(0);
    let made: Vec<u8> =
        (0..16).map(|n| u8::from_str_radix(&made[2 * n..2 * n + 2], 16).unwrap()).collect();
    let forget: [(&(dyn ToSql + Sync), Type); 3] =
        [(&made, Type::BYTEA), (&None::<Vec<u8>>, Type::BYTEA), (&4_096_i64, Type::INT8)];
    alone(&raw, sql::FORGET, &[&key_of(&"k")[..], &forget].concat()).await;

    assert_eq!(place.eye.number(sequence).await, drawn, "no token is drawn, {ns}");
    assert_eq!(place.eye.number("SELECT count(*) FROM dlock_settled").await, 0);
    let lives = format!("SELECT count(*) FROM dlock_sessions WHERE id = {}", bytes(held.session));
    assert_eq!(place.eye.number(&lives).await, 1);
    assert!(a.extend(&held).await.is_some(), "nothing was taken away");
    a.take(&key("free"), &private("next")).await;
}

/// Passes everything on, and spoils the word that begins a transaction while it is told to.
fn spoiler(upstream: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, spoils) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let told = Arc::clone(&spoils);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(client), Ok(server)) = (client, TcpStream::connect(upstream)) else { return };
            let (up, down) = ((client.try_clone(), server.try_clone()), (server, client));
            let (Ok(from), Ok(to)) = up else { return };
            let told = Arc::clone(&told);
            std::thread::spawn(move || pass(from, to, Some(&told)));
            std::thread::spawn(move || pass(down.0, down.1, None));
        }
    });
    (address, spoils)
}

fn pass(mut from: TcpStream, mut to: TcpStream, spoils: Option<&AtomicBool>) {
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let said = &mut buffer[..read];
        if spoils.is_some_and(|spoils| spoils.load(Ordering::SeqCst)) {
            while let Some(at) = said.windows(6).position(|word| word == b"BEGIN;") {
                said[at + 4] = b'M';
            }
        }
        if to.write_all(said).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// The server refuses the begin and runs what follows: nobody knows what came of it, and the connection
/// is nobody's to use (INV-07).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_30_where_the_begin_is_refused_the_rest_is_unknown() {
    let mut place = Place::new().await;
    let url = postgres_url::<Direct>();
    let (host, port) = host_and_port(&url);
    let (address, spoils) = spoiler(SocketAddr::new(host.parse().unwrap(), port));
    let behind = url.replace(&format!("{host}:{port}"), &address.to_string());
    let a = place.caller_with(place.config_at(&behind)).await;
    let held = a.take(&key("held"), &private("worker")).await;
    spoils.store(true, Ordering::SeqCst);
    let request = InsertRequest {
        key: key("k"),
        holder: private("worker"),
        attempt: attempt(),
        intent: Intent::Acquire,
    };
    let taken = a.backend.locks.try_insert(request, soon(&a, 5_000)).await.map(drop);
    let released = a.backend.locks.delete_if_owner(&held.key, held.token, soon(&a, 5_000)).await;
    for error in [taken.unwrap_err(), released.map(drop).unwrap_err()] {
        assert!(error.is_transient(), "INV-07: {error:?}");
        assert_eq!(error.applied(), Applied::Unknown, "{error:?}");
    }
    spoils.store(false, Ordering::SeqCst);
    assert!(a.extend(&held).await.is_some(), "what was not begun took nothing away");
    assert!(a.release(&held).await);
    a.take(&key("k"), &private("next")).await;
}
