//! Raising a floor while somebody's transaction is in its way.

use std::time::Duration;

use dlock_conformance::kit::{key, long, ns, of, private};
use dlock_domain::TokenFloor;

use crate::kit::{Place, soon};

/// Whoever waits for a table lock makes all who come after him wait for his sake; a naive raise
/// lets leases run out that way. Here renewing goes on beside it, and the rest in its pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c45_a_floor_that_waits_to_be_raised_lets_nobody_lose_a_lease() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    let open = a.take(&key("open"), &of(&session)).await;
    let own = a.take(&key("own"), &private("worker")).await;
    let done = a.take(&key("done"), &private("worker")).await;
    let elsewhere = place.raw().await;
    elsewhere.run("BEGIN; LOCK TABLE dlock_locks IN ROW EXCLUSIVE MODE").await;

    let naive = place.raw().await;
    let waits = tokio::spawn(async move {
        naive.run("BEGIN; LOCK TABLE dlock_locks IN SHARE ROW EXCLUSIVE MODE; ROLLBACK").await;
    });
    place.waiting(1).await;
    let refused = elsewhere_locks(&place).await;
    assert_eq!(
        refused, "55P03",
        "a lock that nobody has, and the one who waits for it is in the way"
    );
    elsewhere.run("COMMIT; BEGIN; LOCK TABLE dlock_locks IN ROW EXCLUSIVE MODE").await;
    waits.await.unwrap();

    let b = place.caller().await;
    let floors = b.backend.floors.clone().unwrap();
    let by = soon(&b, 60_000);
    let floor = TokenFloor::new(1_000).unwrap();
    let raised = tokio::spawn(async move { floors.raise(&ns("default"), floor, by).await });
    place.waiting(1).await;
    // None of these waits for any lock.
    let began = a.now();
    assert!(a.keep(&session.id, &[&open]).await.unwrap().lost.is_empty());
    assert!(a.extend(&open).await.is_some());
    assert!(a.extend(&own).await.is_some());
    assert!(a.now().since(began) < Duration::from_secs(20), "within a call's time");
    // These wait for the raise to stand back.
    assert!(a.release(&done).await);
    a.take(&key("next"), &private("next")).await;
    assert!(!raised.is_finished(), "somebody is in its way");
    elsewhere.run("COMMIT").await;
    let raised = raised.await.unwrap().unwrap();
    assert_eq!((raised.floor, raised.grants_ended), (floor, 3));
    assert!(a.extend(&own).await.is_none());
    let next = a.take(&key("own"), &private("next")).await;
    assert!(raised.floor.admits(next.token));
}

/// A lock that agrees with the one that `elsewhere` has; the code of its refusal.
async fn elsewhere_locks(place: &Place) -> String {
    let asks = place.raw().await;
    let lock = "BEGIN; SET LOCAL lock_timeout = '200ms'; \
                LOCK TABLE dlock_locks IN ROW EXCLUSIVE MODE; ROLLBACK";
    let refused = asks.client.batch_execute(lock).await.unwrap_err();
    refused.code().unwrap().code().to_owned()
}

/// An extend has its session and wants the lock's row; a raise ends both. It takes the sessions first,
/// as everybody does, so neither gives way. (In which order the parts of one statement take them,
/// PostgreSQL does not promise.)
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c43_a_raise_meets_extends_and_nobody_gives_way() {
    // Which row a raise comes to first is PostgreSQL's choice: both ways.
    for (extended, blocked) in [("k1", "k2"), ("k2", "k1")] {
        let mut place = Place::new().await;
        // If there were a deadlock, the raise would find it.
        let (role, url) = place.role(&["deadlock_timeout TO '1h'"]).await;
        let a = place.caller_with(place.config_at(&url)).await;
        let held = a.take(&key(extended), &private("worker")).await;
        let _also = a.take(&key(blocked), &private("worker")).await;
        // What is counted stays counted where the transaction is undone.
        let count = "CREATE SEQUENCE counted; GRANT USAGE ON SEQUENCE counted TO PUBLIC; \
                     CREATE FUNCTION count_it() RETURNS trigger LANGUAGE plpgsql AS \
                     $$BEGIN PERFORM nextval('counted'); RETURN NEW; END$$; \
                     CREATE TRIGGER count_it BEFORE UPDATE ON dlock_locks \
                     FOR EACH ROW EXECUTE FUNCTION count_it()";
        place.eye.run(&count.replace("'counted'", &format!("'{}.counted'", place.schema))).await;
        let row = place.raw().await;
        row.run(&format!("BEGIN; SELECT FROM dlock_locks WHERE name = '{blocked}' FOR UPDATE"))
            .await;

        let b = place.caller().await;
        let (floors, by) = (b.backend.floors.clone().unwrap(), soon(&b, 60_000));
        let floor = TokenFloor::new(1_000).unwrap();
        let raised = tokio::spawn(async move { floors.raise(&ns("default"), floor, by).await });
        place.waiting(1).await;
        let (extends, of_it) = (a.clone(), held.clone());
        let late = tokio::spawn(async move { extends.extend(&of_it).await });
        place.waiting(2).await;
        row.run("COMMIT").await;
        assert_eq!(raised.await.unwrap().unwrap().grants_ended, 2);
        assert!(late.await.unwrap().is_none(), "it came after the raise");
        assert_eq!(place.eye.number("SELECT last_value FROM counted").await, 2, "made once");
        drop(a);
        place.drop_role(&role).await;
    }
}

/// While a floor is being raised releases wait, more of them than there are connections for releasing:
/// a renewal still finds one (trap 28).
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn c45_renewals_find_a_connection_while_releases_wait_for_a_raise() {
    let mut place = Place::new().await;
    let mut config = place.config();
    config.pool = 4;
    let a = place.caller_with(config).await;
    let session = a.open("worker", long()).await;
    let mut held = Vec::new();
    for n in 0..8 {
        held.push(a.take(&key(&format!("k{n}")), &of(&session)).await);
    }
    let kept = a.take(&key("kept"), &of(&session)).await;
    let raises = place.raw().await;
    raises.run("BEGIN; LOCK TABLE dlock_locks IN SHARE ROW EXCLUSIVE MODE").await;
    let releases: Vec<_> = held
        .into_iter()
        .map(|handle| {
            let a = a.clone();
            tokio::spawn(async move { a.release(&handle).await })
        })
        .collect();
    place.waiting(1).await;
    for _ in 0..5 {
        assert!(a.extend(&kept).await.is_some());
        assert_eq!(a.keep(&session.id, &[&kept]).await.unwrap().lost, []);
    }
    assert!(releases.iter().all(|release| !release.is_finished()));
    raises.run("COMMIT").await;
    for release in releases {
        assert!(release.await.unwrap());
    }
}
