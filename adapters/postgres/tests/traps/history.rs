//! Trap 29 and C44: a sequence that hands out of order, or goes back, and a database that is not the
//! one that gave the last tokens.

use dlock_conformance::kit::{attempt, key, key_in, long, ns, of, private};
use dlock_domain::{ErrorKind, Invariant, LockError, TokenFloor};
use dlock_postgres::AfterFailover;

use crate::kit::Place;

const INCIDENT: ErrorKind = ErrorKind::InvariantViolated(Invariant::TokensRise);

fn assert_names_the_way_out(error: &LockError) {
    assert_eq!(error.kind(), INCIDENT, "{error:?}");
    assert!(error.detail().contains("dlock floor raise"), "{}", error.detail());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_29_tokens_come_in_order_from_all_connections() {
    let mut place = Place::new().await;
    let (one, two) = (place.raw().await, place.raw().await);
    one.run("CREATE SEQUENCE naive_tokens CACHE 10").await;
    let next = "SELECT nextval('naive_tokens')";
    let drawn = (one.number(next).await, two.number(next).await, one.number(next).await);
    assert_eq!(drawn, (1, 11, 2), "the third is lower than the second");

    let ours = format!(
        "SELECT concat_ws(' ', data_type, min_value, max_value, increment_by, cycle, cache_size) \
         FROM pg_sequences WHERE schemaname = '{}' AND sequencename = 'dlock_fencing_token_seq'",
        place.schema
    );
    assert_eq!(place.eye.texts(&ours).await, ["bigint 1 9007199254740991 1 f 1"]);
    let (a, b) = (place.caller().await, place.caller().await);
    let mut last = 0;
    for n in 0..40 {
        let caller = if n % 3 == 0 { &a } else { &b };
        let handle = caller.take(&key("k"), &private("worker")).await;
        assert!(handle.token.get() > last);
        last = handle.token.get();
        assert!(caller.release(&handle).await);
    }
}

/// The greatest token is the last: what comes after is refused as an incident, and nothing cycles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_29_the_sequence_ends_and_does_not_begin_again() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    place.eye.run("SELECT setval('dlock_fencing_token_seq', 9007199254740990)").await;
    let last = a.take(&key("k"), &private("worker")).await;
    assert_eq!(last.token.get(), 9_007_199_254_740_991);
    assert!(a.release(&last).await);
    let refused = a.insert(&key("k"), &private("worker"), attempt()).await.unwrap_err();
    assert_eq!(refused.kind(), INCIDENT, "{refused:?}");
}

/// C44: the sequence is set back by hand under a running server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_a_sequence_set_back_grants_nothing_until_the_floor_is_raised() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    for _ in 0..30 {
        let handle = a.take(&key("k"), &private("worker")).await;
        assert!(a.release(&handle).await);
    }
    let highest = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&highest).await);

    // What the naive one would hand out, and what ours makes of it, here and at another server.
    place.eye.run("SELECT setval('dlock_fencing_token_seq', 5)").await;
    let naive = place.eye.number("SELECT nextval('dlock_fencing_token_seq')").await;
    assert!(u64::try_from(naive).unwrap() < highest.token.get());
    let b = place.caller().await;
    for caller in [&a, &b] {
        let refused = caller.insert(&key("k"), &private("worker"), attempt()).await.unwrap_err();
        assert_names_the_way_out(&refused);
        let revoked = caller
            .backend
            .locks
            .revoke(&key("k"), dlock_conformance::kit::revocation(None), caller.by())
            .await
            .unwrap_err();
        assert_names_the_way_out(&revoked);
    }
    assert!(a.read(&key("k")).await.is_none(), "nothing was granted");

    let floors = a.backend.floors.clone().unwrap();
    let raised = floors.raise(&ns("default"), TokenFloor::new(0).unwrap(), a.by()).await.unwrap();
    assert!(!raised.floor.admits(highest.token), "what the rows know is enough");
    for caller in [&b, &a] {
        let handle = caller.take(&key("k"), &private("worker")).await;
        assert!(handle.token > highest.token && raised.floor.admits(handle.token));
        assert!(caller.release(&handle).await);
    }
}

/// A lock whose row was purged is behind the floor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_what_a_purged_row_knew_is_known() {
    let mut place = Place::new().await;
    let mut config = place.config();
    config.purge_after = std::time::Duration::ZERO;
    let a = place.caller_with(config).await;
    let handle = a.take(&key("k"), &private("worker")).await;
    assert!(a.release(&handle).await);
    a.reap(10).await;
    assert_eq!(place.eye.number("SELECT count(*) FROM dlock_locks").await, 0);
    place.eye.run("SELECT setval('dlock_fencing_token_seq', 1, false)").await;
    let refused = a.insert(&key("k"), &private("worker"), attempt()).await.unwrap_err();
    assert_names_the_way_out(&refused);
}

/// A floor outlives a sequence that is set back, also for locks that nobody ever held (INV-04).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c44_a_floor_is_known_where_no_row_and_no_sequence_knows_it() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let floors = a.backend.floors.clone().unwrap();
    let floor = TokenFloor::new(1_000).unwrap();
    floors.raise(&ns("default"), floor, a.by()).await.unwrap();
    place.eye.run("SELECT setval('dlock_fencing_token_seq', 1)").await;
    let refused = a.insert(&key("never held"), &private("worker"), attempt()).await.unwrap_err();
    assert_names_the_way_out(&refused);

    // Nor is anything granted where nobody knows a floor any more, until one is raised.
    place.eye.run("DELETE FROM dlock_meta WHERE one").await;
    for name in ["default", "other"] {
        let refused =
            a.insert(&key_in(name, "k"), &private("worker"), attempt()).await.unwrap_err();
        assert_names_the_way_out(&refused);
    }
    floors.raise(&ns("default"), floor, a.by()).await.unwrap();
    assert!(floor.admits(a.take(&key("k"), &private("worker")).await.token));
}

/// The rows say that the last tokens came from another cluster, or from this one on another
/// timeline: this may be an older copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_29_another_history_grants_nothing_until_the_floor_is_raised() {
    for change in [
        "UPDATE dlock_meta SET system_identifier = system_identifier + 1 WHERE one",
        "UPDATE dlock_meta SET timeline = timeline + 1 WHERE one",
    ] {
        let mut place = Place::new().await;
        let a = place.caller().await;
        let session = a.open("worker", long()).await;
        let held = a.take(&key("held"), &of(&session)).await;
        let own = a.take(&key("own"), &private("worker")).await;
        let elsewhere = a.take(&key_in("elsewhere", "k"), &private("worker")).await;
        place.eye.run(change).await;

        let b = place.caller().await;
        for caller in [&a, &b] {
            for holder in [private("next"), of(&session)] {
                let refused = caller.insert(&key("k"), &holder, attempt()).await.unwrap_err();
                assert_names_the_way_out(&refused);
            }
            // What is held is kept, met, looked at and given back.
            assert_eq!(caller.keep(&session.id, &[&held]).await.unwrap().lost, []);
            assert_eq!(caller.extend(&own).await.unwrap().token, own.token);
            caller.meet(&key("own"), &private("next")).await;
            assert_eq!(caller.look(&session.id).await.unwrap().1.len(), 1);
        }
        let drawn = place.eye.number("SELECT last_value FROM dlock_fencing_token_seq").await;
        assert_eq!(u64::try_from(drawn).unwrap(), elsewhere.token.get(), "no token is drawn");
        assert!(b.release(&own).await);

        // Where no commit can be lost, an operator may say so.
        let mut config = place.config();
        config.after_failover = AfterFailover::Trust;
        let trusting = place.caller_with(config).await;
        let trusted = trusting.take(&key("trusted"), &private("next")).await;
        assert!(trusted.token > elsewhere.token);
        let still = a.insert(&key("k"), &private("next"), attempt()).await.unwrap_err();
        assert_names_the_way_out(&still);

        let floors = b.backend.floors.clone().unwrap();
        let floor = TokenFloor::new(trusted.token.get() + 1_000).unwrap();
        let raised = floors.raise(&ns("default"), floor, b.by()).await.unwrap();
        assert_eq!((raised.floor, raised.grants_ended), (floor, 2));
        for caller in [&a, &b] {
            let next = caller.take(&key("k"), &private("next")).await;
            assert!(floor.admits(next.token));
            assert!(caller.release(&next).await);
            assert!(
                caller.extend(&elsewhere).await.is_some(),
                "another namespace's grants live on"
            );
        }

        // Whoever raised it said nothing of other namespaces, whose lost tokens may be higher.
        for name in ["elsewhere", "never-seen"] {
            let refused = a.insert(&key_in(name, "l"), &private("next"), attempt()).await;
            assert_names_the_way_out(&refused.unwrap_err());
        }
        let higher = TokenFloor::new(floor.get() + 1_000).unwrap();
        floors.raise(&ns("elsewhere"), higher, b.by()).await.unwrap();
        let next = a.take(&key_in("elsewhere", "l"), &private("next")).await;
        assert!(higher.admits(next.token));
        let refused = a.insert(&key_in("never-seen", "l"), &private("next"), attempt()).await;
        assert_names_the_way_out(&refused.unwrap_err());

        // It goes over once more: what was said was said of that time.
        place.eye.run("UPDATE dlock_histories SET timeline = timeline - 1").await;
        let refused = b.insert(&key("l"), &private("next"), attempt()).await.unwrap_err();
        assert_names_the_way_out(&refused);
    }
}
