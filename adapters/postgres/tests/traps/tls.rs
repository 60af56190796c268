//! Connections that are encrypted, to a server whose certificate is checked.

use dlock_conformance::{
    kit::{key, private},
    stores::fresh_seed,
};
use dlock_postgres::{ConnectError, PostgresConfig, Tls};
use dlock_servers::{CERTIFIED, PostgresServer};

use crate::kit::{caller, connect, version};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_spoken_to_through_tls_and_no_other_is_trusted() {
    let server = PostgresServer::start_with_tls(version().await, &[]);
    let mut config = PostgresConfig::at(server.url("postgres"));
    let authority = std::fs::read(server.authority()).unwrap();
    config.tls = Some(Tls { authority, identity: None });
    let store = connect(config.clone(), fresh_seed()).await.unwrap();
    let a = caller(&store);
    let held = a.take(&key("k"), &private("worker")).await;
    let plain = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                 WHERE a.application_name = 'dlock' AND NOT s.ssl";
    assert_eq!(server.query("postgres", plain), [["0"]]);
    let ours = "SELECT count(*) > 0 FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                WHERE a.application_name = 'dlock' AND s.ssl";
    assert_eq!(server.query("postgres", ours), [["t"]]);
    assert!(a.release(&held).await);

    // Another server's authority vouches for nothing here.
    let other = PostgresServer::start_with_tls(version().await, &[]);
    let authority = std::fs::read(other.authority()).unwrap();
    config.tls = Some(Tls { authority, identity: None });
    let refused = connect(config, fresh_seed()).await.err().unwrap().to_string();
    assert!(refused.contains("certificate"), "{refused}");
}

/// A role without a password, whom the server knows by a certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_is_let_in_by_its_certificate() {
    let server = PostgresServer::start_with_tls(version().await, &[]);
    server.execute("postgres", &format!("CREATE ROLE {CERTIFIED} LOGIN SUPERUSER"));
    let at = format!("postgres://{CERTIFIED}@{}/postgres", server.address());
    let mut config = PostgresConfig::at(at);
    let authority = std::fs::read(server.authority()).unwrap();
    let files = server.identity();
    let identity = (std::fs::read(files.certificate).unwrap(), std::fs::read(files.key).unwrap());
    config.tls = Some(Tls { authority: authority.clone(), identity: Some(identity) });
    let store = connect(config.clone(), fresh_seed()).await.unwrap();
    let a = caller(&store);
    let held = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&held).await);

    // Without it, or without TLS, it is nobody.
    config.tls = Some(Tls { authority, identity: None });
    let refused = connect(config.clone(), fresh_seed()).await.err().unwrap();
    assert!(matches!(refused, ConnectError::Denied(_)), "{refused:?}");
    config.tls = None;
    let refused = connect(config, fresh_seed()).await.err().unwrap();
    assert!(matches!(refused, ConnectError::Denied(_)), "{refused:?}");
}
