//! T-032: extend and delete, each on the grant's own revision and nothing else.

use dlock_conformance::kit::{key, long, millis, of, private, private_for, until};
use etcd_client::{Compare, CompareOp, PutOptions, Txn, TxnOp};

use crate::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_three_renews_return_one_token_and_write_nothing() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private_for("worker", millis(20_000))).await;
    let before = place.found(&key("k")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(a.extend(&handle).await.unwrap().token, handle.token);
    }
    let after = place.found(&key("k")).await.unwrap();
    // Trap 1: no write, so no other revision, and the lease is the same (trap 6).
    assert_eq!(
        (after.mod_revision(), after.version(), after.lease(), after.value()),
        (before.mod_revision(), 1, before.lease(), before.value())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_the_lease_still_holds_the_key_after_a_renew() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    a.extend(&handle).await.unwrap();
    let lease = place.found(&key("k")).await.unwrap().lease();
    place.raw.lease_revoke(lease).await.unwrap();
    assert!(place.found(&key("k")).await.is_none(), "it went with its lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_a_renew_after_loss_is_none_and_no_error() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let first = a.take(&key("k1"), &private("worker")).await;
    let second = a.take(&key("k2"), &private("worker")).await;
    let lease = place.found(&key("k1")).await.unwrap().lease();
    place.raw.lease_revoke(lease).await.unwrap();
    place.delete(&key("k2")).await;
    for caller in [&a, &b] {
        assert_eq!(caller.extend(&first).await, None, "its lease was ended");
        assert_eq!(caller.extend(&second).await, None, "its key was deleted");
    }
}

/// The scenario that the store exists for: a holder that was stalled past its lease deletes nothing
/// of its successor's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_a_stale_releaser_touches_nothing() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    // Nobody keeps it alive.
    let session = a.open("stalled", millis(2_000)).await;
    let stale = a.take(&key("k"), &of(&session)).await;
    for _ in 0..200 {
        if place.found(&key("k")).await.is_none() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let successor = b.take(&key("k"), &private("successor")).await;
    assert!(successor.token > stale.token);
    assert!(!a.release(&stale).await);
    let found = place.found(&key("k")).await.unwrap();
    assert_eq!(u64::try_from(found.mod_revision()).unwrap(), successor.token.get());
    assert!(b.extend(&successor).await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_a_wrong_token_releases_nothing() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let session = a.open("worker", long()).await;
    let first = a.take(&key("k"), &of(&session)).await;
    assert!(a.release(&first).await);
    let other = b.take(&key("k"), &private("other")).await;
    assert!(!a.release(&first).await);
    assert_eq!(a.read(&key("k")).await.unwrap().token, other.token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_there_is_nothing_to_reap() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    a.take(&key("k"), &private("worker")).await;
    assert_eq!(a.reap(100).await, 0);
}

/// Trap 2: after a handoff in one commit the key's creation is the first holder's. Whoever compares
/// that deletes the successor; the granting revision does not match.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_02_identity_is_the_revision_of_the_last_write() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let first = a.take(&key("k"), &private("first")).await;
    let successor = a.open("successor", long()).await;
    let lent = a.take(&key("lent"), &of(&successor)).await;
    let (at, lender) = (place.at(&key("k")), place.found(&key("lent")).await.unwrap());
    let before = place.found(&key("k")).await.unwrap();
    // One commit that releases for the first and grants to the successor.
    let handoff = Txn::new()
        .when([Compare::mod_revision(at.clone(), CompareOp::Equal, before.mod_revision())])
        .and_then([TxnOp::put(
            at.clone(),
            lender.value(),
            Some(PutOptions::new().with_lease(lender.lease())),
        )]);
    assert!(place.raw.txn(handoff).await.unwrap().succeeded());
    let handed = place.found(&key("k")).await.unwrap();
    assert_eq!(handed.create_revision(), before.create_revision());

    assert!(!a.release(&first).await, "the first holder's release finds another grant");
    assert_eq!(a.extend(&first).await, None);
    assert_eq!(place.found(&key("k")).await.unwrap().mod_revision(), handed.mod_revision());
    assert!(a.extend(&lent).await.is_some());

    // The naive release, which takes the first holder's token for the key's creation.
    let created = i64::try_from(first.token.get()).unwrap();
    let naive = Txn::new()
        .when([Compare::create_revision(at.clone(), CompareOp::Equal, created)])
        .and_then([TxnOp::delete(at, None)]);
    assert!(place.raw.txn(naive).await.unwrap().succeeded());
    assert!(place.found(&key("k")).await.is_none(), "it deletes the successor's grant");
}

/// A private session ends with its lock, also when the key was deleted behind everybody's back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_session_ends_with_its_key() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    let lease = place.found(&key("k")).await.unwrap().lease();
    place.delete(&key("k")).await;
    assert!(a.keep(&handle.session, &[&handle]).await.is_none());
    let mut raw = place.raw.clone();
    let mut gone = false;
    for _ in 0..100 {
        gone = raw.lease_time_to_live(lease, None).await.unwrap().ttl() < 0;
        if gone {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    until("its lease is given back", || gone).await;
}
