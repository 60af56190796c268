//! T-030: the granting transaction.

use dlock_conformance::kit::{attempt, granted, key, long, of, private};
use dlock_ports::Attempt;

use crate::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t030_two_concurrent_inserts_give_exactly_one_grant() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    for round in 0..50 {
        let key = key(&format!("k{round}"));
        let shot = |caller: dlock_conformance::kit::Caller| {
            let key = key.clone();
            tokio::spawn(async move { caller.insert(&key, &private("worker"), attempt()).await })
        };
        let (one, other) = (shot(a.clone()), shot(b.clone()));
        let answers = [one.await.unwrap().unwrap(), other.await.unwrap().unwrap()];
        let grants = answers.iter().filter(|answer| matches!(answer, Attempt::Granted(_))).count();
        assert_eq!(grants, 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t030_the_token_is_the_revision_of_the_granting_transaction() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        place.write_elsewhere().await;
        let handle = a.take(&key("k"), &holder).await;
        let found = place.found(&key("k")).await.unwrap();
        assert_ne!(handle.token.get(), 0);
        assert_eq!(u64::try_from(found.mod_revision()).unwrap(), handle.token.get());
        assert_eq!(found.create_revision(), found.mod_revision(), "written once");
        assert!(found.lease() > 0, "under a lease");
        // The token is not stored a second time: no field of the record is one.
        let record: serde_json::Value = serde_json::from_slice(found.value()).unwrap();
        let mut fields: Vec<_> = record.as_object().unwrap().keys().cloned().collect();
        fields.sort();
        let known = [
            "acquired_at_ms",
            "asked_ms",
            "attempt",
            "owner",
            "private",
            "r",
            "session",
            "ttl_ms",
            "v",
        ];
        assert_eq!(fields, known);
        assert!(a.release(&handle).await);
    }
}

/// Whatever reads the token again after the grant gets another one here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t030_unrelated_writes_do_not_change_the_token() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let session = a.open("worker", long()).await;
    let named = attempt();
    let handle = a.take_as(&key("k"), &of(&session), named).await;
    for _ in 0..5 {
        place.write_elsewhere().await;
        b.meet(&key("k"), &private("contender")).await;
        assert_eq!(a.extend(&handle).await.unwrap().token, handle.token);
        assert_eq!(b.read(&key("k")).await.unwrap().token, handle.token);
        let again = granted(b.insert(&key("k"), &of(&session), named).await);
        assert_eq!(again.token, handle.token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t030_tokens_rise_across_raw_deletes() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    let mut last = None;
    for _ in 0..8 {
        let handle = a.take(&key("k"), &of(&session)).await;
        assert!(Some(handle.token) > last);
        last = Some(handle.token);
        place.delete(&key("k")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t030_the_store_names_itself_etcd() {
    let mut place = Place::new().await;
    assert_eq!(place.caller().await.backend.locks.backend_id(), "etcd");
}
