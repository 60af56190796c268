//! C47: roles that may do little.

use dlock_conformance::kit::{attempt, granted, key, long, ns, of, private};
use dlock_domain::{LockName, TokenFloor};
use dlock_ports::{Consistency, Intent, ListRequest};
use dlock_postgres::{ConnectError, PostgresStore, schema_sql};

use crate::{
    kit::{Place, caller},
    settings::ODD,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c47_a_role_that_may_not_create_is_told_what_to_do_and_then_does_everything() {
    let mut place =
        Place::bare(dlock_conformance::stores::postgres_url::<dlock_conformance::stores::Direct>())
            .await;
    let schema = place.schema.clone();
    let role = place.bare_role().await;
    let config = place.config_at(&place.url_of(&role));

    // Without a schema, and with one that is empty.
    for prepare in
        ["SELECT 1", &format!("CREATE SCHEMA {schema}; GRANT USAGE ON SCHEMA {schema} TO {role}")]
    {
        place.eye.run(prepare).await;
        let refused = place.try_connect(config.clone()).await.err().unwrap();
        let ConnectError::MayNotCreate { schema: named, role: who } = &refused else {
            panic!("{refused:?}")
        };
        assert_eq!((named, who), (&schema, &role));
        assert!(refused.to_string().contains("dlock postgres schema"), "{refused}");
    }

    // What an owner runs by hand; its last lines are comments that say what the role needs.
    let sql = schema_sql(&schema).unwrap();
    place.eye.run(&sql).await;
    let grants: Vec<_> = sql.lines().filter_map(|line| line.strip_prefix("-- GRANT ")).collect();
    assert_eq!(grants.len(), 3, "{sql}");
    for grant in grants {
        assert!(grant.contains("dlock_app"), "{grant}");
        place.eye.run(&format!("GRANT {}", grant.replace("dlock_app", &role))).await;
    }
    let store = place.try_connect(config.clone()).await.unwrap();
    everything(&store).await;
    // It still may not make anything.
    let raw = crate::kit::Raw::connect(&place.url_of(&role), &schema).await;
    let refused = raw.client.batch_execute("CREATE TABLE t ()").await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    drop((store, raw));
    place.drop_role(&role).await;
}

/// Every method of every port.
async fn everything(store: &PostgresStore) {
    let a = caller(store);
    let (session, one) = (a.open("worker", long()).await, attempt());
    let again = a.try_open("worker", long(), Some(session.id)).await.unwrap();
    assert_eq!(again.id, session.id);
    let handle = a.take_as(&key("k"), &of(&session), one).await;
    a.meet(&key("k"), &private("other")).await;
    let found = granted(a.shot(&key("k"), &of(&session), one, Intent::Recover).await);
    assert_eq!(found.token, handle.token);
    assert_eq!(a.extend(&handle).await.unwrap().token, handle.token);
    assert_eq!(a.keep(&session.id, &[&handle]).await.unwrap().lost, []);
    assert_eq!(a.look(&session.id).await.unwrap().1.len(), 1);
    assert_eq!(a.read(&key("k")).await.unwrap().token, handle.token);
    let follower = a.backend.locks.read(&key("k"), Consistency::Follower, a.by()).await;
    assert!(follower.unwrap().is_some());
    let request =
        ListRequest { namespace: ns("default"), prefix: "".into(), after: None, limit: 10 };
    let directory = a.backend.directory.clone().unwrap();
    let page = directory.list(request, a.by()).await.unwrap();
    assert_eq!(page.locks.len(), 1);
    assert_eq!(page.locks[0].key.name(), &LockName::new("k").unwrap());
    assert!(a.release(&handle).await);
    a.take(&key("k"), &private("worker")).await;
    a.revoke(&key("k"), None).await;
    let two = attempt();
    a.take_as(&key("k"), &of(&session), two).await;
    assert!(a.forget(&key("k"), &of(&session), two).await);
    let last = a.take(&key("k"), &of(&session)).await;
    let floors = a.backend.floors.clone().unwrap();
    let floor = TokenFloor::new(last.token.get() + 500).unwrap();
    let raised = floors.raise(&ns("default"), floor, a.by()).await.unwrap();
    assert_eq!((raised.floor, raised.grants_ended), (floor, 1));
    assert!(a.close(&session.id).await);
    assert_eq!(a.reap(10).await, 0);
    assert!(a.take(&key("k"), &private("worker")).await.token.get() > floor.get());
}

/// One that may create makes the tables whatever its defaults are, several at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c43_c47_a_role_with_odd_defaults_makes_the_tables() {
    let mut place =
        Place::bare(dlock_conformance::stores::postgres_url::<dlock_conformance::stores::Direct>())
            .await;
    let role = place.bare_role().await;
    for setting in ODD {
        place.eye.run(&format!("ALTER ROLE {role} SET {setting}")).await;
    }
    place
        .eye
        .run(&format!(
            "CREATE SCHEMA {schema}; GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}",
            schema = place.schema
        ))
        .await;
    let config = place.config_at(&place.url_of(&role));
    let mut all = Vec::new();
    for _ in 0..4 {
        let (config, seed) = (config.clone(), place.next());
        all.push(tokio::spawn(async move { crate::kit::connect(config, seed).await }));
    }
    let mut stores = Vec::new();
    for one in all {
        stores.push(one.await.unwrap().unwrap());
    }
    everything(&stores[3]).await;
    drop(stores);
    place.drop_role(&role).await;
}

/// Servers that start together on a fresh database make its schema once. What was looked up by name
/// before the wait for one's turn is remembered as it was then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_together_make_the_tables_once() {
    /// Whose turn it is to make tables.
    const TURN: &str = "110416888032000";
    let mut place =
        Place::bare(dlock_conformance::stores::postgres_url::<dlock_conformance::stores::Direct>())
            .await;
    let first = place.raw().await;
    first.run(&format!("SELECT pg_advisory_lock({TURN})")).await;
    let mut all = Vec::new();
    for n in 1..=3 {
        let (config, seed) = (place.config(), place.next());
        all.push(tokio::spawn(async move { crate::kit::connect(config, seed).await }));
        place.waiting(n).await;
    }
    first.run(&format!("SELECT pg_advisory_unlock({TURN})")).await;
    for one in all {
        one.await.unwrap().unwrap();
    }
    everything(&place.store().await).await;
}

/// A name that the database cannot hold would be refused for ever as if it might pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_31_a_database_that_cannot_hold_every_name_is_refused() {
    let place = Place::new().await;
    let database = format!("latin_{}", place.schema);
    place
        .eye
        .run(&format!(
            "CREATE DATABASE {database} TEMPLATE template0 ENCODING 'LATIN1' \
             LOCALE_PROVIDER libc LOCALE 'C'"
        ))
        .await;
    let mut config = place.config();
    let (url, _) = config.url.rsplit_once('/').unwrap();
    config.url = format!("{url}/{database}");
    let refused = crate::kit::connect(config, 1).await.err().unwrap();
    let ConnectError::Encoding { encoding } = &refused else { panic!("{refused:?}") };
    assert_eq!(encoding, "LATIN1");
    place.eye.run(&format!("DROP DATABASE {database}")).await;
}

/// Tables of a later version are left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c47_a_newer_schema_is_refused_by_its_version() {
    let mut place = Place::new().await;
    place
        .eye
        .run("INSERT INTO __diesel_schema_migrations (version) VALUES ('20990101000001')")
        .await;
    let refused = place.try_connect(place.config()).await.err().unwrap();
    let ConnectError::Newer { version, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(version, "20990101000001");
}
