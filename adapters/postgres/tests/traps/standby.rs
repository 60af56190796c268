//! Commits that wait for a standby that is not there.

use dlock_conformance::kit::{attempt, key, private};
use dlock_domain::Applied;
use dlock_ports::{InsertRequest, Intent};
use dlock_servers::PostgresServer;

use crate::kit::{Place, in_the_end, soon, version};

/// How many connections the store may have, and their names' owner has to count.
const POOL: usize = 4;

/// Such a commit is in the server's log and not answered. It is unknown, never a success; and calls
/// that nobody answers open no connection after connection, since PostgreSQL keeps each of them for as
/// long as it waits, whether anybody listens or not (trap 30).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn trap_30_calls_that_are_not_answered_leave_no_crowd_of_connections() {
    let server = PostgresServer::start(version().await);
    let mut place = Place::at(server.url("postgres")).await;
    let mut config = place.config();
    config.pool = POOL;
    let a = place.caller_with(config).await;
    let held = a.take(&key("held"), &private("worker")).await;
    let set = |standbys: &str| format!("ALTER SYSTEM SET synchronous_standby_names = '{standbys}'");
    place.eye.run(&set("nobody")).await;
    place.eye.run("SELECT pg_reload_conf()").await;
    let waits = "SELECT (current_setting('synchronous_standby_names') = 'nobody')::int::bigint";
    place.eye.becomes(waits, 1).await;

    let ours = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}' \
         AND backend_type = 'client backend'",
        place.schema
    );
    // The eye has the same name.
    let most = i64::try_from(2 * POOL).unwrap() + 1;
    let (mut unknown, mut unsent) = (0, 0);
    for n in 0..24 {
        let request = InsertRequest {
            key: key(&format!("k{n}")),
            holder: private("worker"),
            attempt: attempt(),
            intent: Intent::Acquire,
        };
        let by = soon(&a, 400);
        let (locks, token) = (&a.backend.locks, held.token);
        let (taken, extended) =
            tokio::join!(locks.try_insert(request, by), locks.extend(&held.key, token, by));
        for error in [taken.map(drop).unwrap_err(), extended.map(drop).unwrap_err()] {
            assert!(error.is_transient(), "INV-07: {error:?}");
            match error.applied() {
                Applied::Unknown => unknown += 1,
                Applied::No => unsent += 1,
            }
        }
        let now = place.eye.number(&ours).await;
        assert!(now <= most, "{now} connections");
    }
    assert!(unknown >= POOL && unsent > 0, "{unknown} unknown, {unsent} not sent");

    // The standby comes back: everybody is answered, and it goes on with what it is told to have.
    place.eye.run(&set("")).await;
    place.eye.run("SELECT pg_reload_conf()").await;
    let (locks, token) = (&a.backend.locks, held.token);
    let extended = in_the_end(|| locks.extend(&held.key, token, soon(&a, 2_000))).await;
    assert_eq!(extended.unwrap().token, held.token);
    let settled = format!("SELECT (({ours}) <= {})::int::bigint", POOL + 1);
    place.eye.becomes(&settled, 1).await;
    assert!(a.release(&held).await);
}
