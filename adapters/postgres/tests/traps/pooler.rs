//! Trap 31: a pooler in transaction mode. (C42: the whole suite runs through one,
//! `tests/conformance/tests/postgres_pooled.rs`.)

use std::str::FromStr;

use dlock_conformance::{
    kit::{key, long, of, private},
    stores::{Direct, postgres_url},
};
use dlock_servers::{PgBouncer, Upstream};
use tokio_postgres::Config;

use crate::kit::{Place, Raw, host_and_port};

/// A pooler of the test's own, with so many connections to the server that all tests share.
fn pooler(connections: usize) -> (PgBouncer, String) {
    let url = postgres_url::<Direct>();
    let (host, port) = host_and_port(&url);
    let config = Config::from_str(&url).unwrap();
    let password = config.get_password().map(|p| String::from_utf8(p.to_vec()).unwrap());
    let upstream = Upstream {
        host,
        port,
        user: config.get_user().unwrap().to_owned(),
        password: password.unwrap_or_default(),
    };
    let database = config.get_dbname().unwrap().to_owned();
    let pooler = PgBouncer::start_with(&upstream, connections, &[]);
    let url = pooler.url(&database);
    (pooler, url)
}

/// Two connections behind the pooler: what is prepared on one is not there on the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_31_named_statements_break_behind_a_pooler() {
    let place = Place::new().await;
    let (_pooler, url) = pooler(2);
    let one = Raw::connect(&url, &place.schema).await;
    let pid = "SELECT pg_backend_pid()::bigint";
    one.run("BEGIN").await;
    let prepared_at = one.number(pid).await;
    let naive = one.client.prepare("SELECT 1").await.unwrap();
    one.run("COMMIT").await;
    // Others take both connections, and give the one back on which nothing is prepared.
    let (two, three) =
        (Raw::connect(&url, &place.schema).await, Raw::connect(&url, &place.schema).await);
    two.run("BEGIN").await;
    three.run("BEGIN").await;
    let at = (two.number(pid).await, three.number(pid).await);
    assert!(at.0 == prepared_at || at.1 == prepared_at, "there are two connections");
    let other = if at.0 == prepared_at { &three } else { &two };
    other.run("COMMIT").await;
    let refused = one.client.query(&naive, &[]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "26000", "there is no such statement: {refused:?}");
}

/// Twenty clients, each with a store of its own, over one connection and over two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_31_everything_works_over_one_or_two_connections() {
    for connections in [1, 2] {
        let mut place = Place::new().await;
        let (_pooler, url) = pooler(connections);
        let mut clients = Vec::new();
        for n in 0..20 {
            let a = place.caller_with(place.config_at(&url)).await;
            clients.push(tokio::spawn(async move {
                let session = a.open("worker", long()).await;
                let mut last = 0;
                for round in 0..5 {
                    let own = a.take(&key(&format!("own{n}")), &of(&session)).await;
                    assert!(own.token.get() > last);
                    last = own.token.get();
                    assert_eq!(a.extend(&own).await.unwrap().token, own.token);
                    assert_eq!(a.keep(&session.id, &[&own]).await.unwrap().lost, []);
                    let shared = dlock_conformance::kit::attempt();
                    let got = a.insert(&key("shared"), &private("worker"), shared).await.unwrap();
                    if let dlock_ports::Attempt::Granted(shared) = got {
                        assert!(a.read(&shared.key).await.is_some());
                        assert!(a.release(&shared).await);
                    }
                    assert!(a.release(&own).await, "{round}");
                }
                assert!(a.close(&session.id).await);
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
        let leftover = "SELECT count(*) FROM dlock_sessions";
        assert_eq!(place.eye.number(leftover).await, 0);
    }
}
