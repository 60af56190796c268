//! Trap 15: a token is mapped by an offset that somebody else may have changed meanwhile.

use dlock_conformance::kit::{key, long, of};
use dlock_domain::{Namespace, TokenFloor};
use etcd_client::{Compare, CompareOp, Txn, TxnOp};

use crate::Place;

/// Two servers. The floor is raised through one; a holder of the old numbering comes late through the
/// other, which still knows the old offset.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_15_an_old_offset_maps_no_token() {
    let mut place = Place::new().await;
    let (a, b) = (place.caller().await, place.caller().await);
    let session = b.open("worker", long()).await;
    // b knows the namespace's offset now: none.
    let stale = b.take(&key("k"), &of(&session)).await;
    let floors = a.backend.floors.clone().unwrap();
    let floor = TokenFloor::new(stale.token.get() + 1_000).unwrap();
    let raised = floors.raise(&Namespace::default(), floor, a.by()).await.unwrap();
    assert_eq!(raised.grants_ended, 1);
    let live = a.take(&key("k"), &of(&session)).await;
    assert!(raised.floor.admits(live.token));

    // What the naive store would compare: the token less the offset that it remembers, which is 0.
    // With the right luck that is the revision of another's grant.
    let found = place.found(&key("k")).await.unwrap();
    let mapped = i64::try_from(live.token.get()).unwrap();
    assert_ne!(found.mod_revision(), mapped, "the numbering has moved");
    let lucky = u64::try_from(found.mod_revision()).unwrap();
    let lucky = dlock_domain::FencingToken::from_user(lucky).unwrap();
    assert!(!b.release_token(&key("k"), lucky).await, "it is no token of the new numbering");
    assert_eq!(b.extend_token(&key("k"), lucky).await, None);
    assert!(!b.release(&stale).await);
    assert_eq!(b.extend(&live).await.unwrap().token, live.token, "undisturbed");

    let at = place.at(&key("k"));
    let naive = Txn::new()
        .when([Compare::mod_revision(
            at.clone(),
            CompareOp::Equal,
            i64::try_from(lucky.get()).unwrap(),
        )])
        .and_then([TxnOp::delete(at, None)]);
    assert!(place.raw.txn(naive).await.unwrap().succeeded(), "it deletes another's grant");
    assert!(place.found(&key("k")).await.is_none());
}

/// C15: one of a session's hundred keys is deleted behind our back, then its lease is revoked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_exactly_what_is_gone_is_named() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let session = a.open("worker", long()).await;
    let mut handles = Vec::new();
    // More than one transaction takes.
    for n in 0..230 {
        handles.push(a.take(&key(&format!("k{n:03}")), &of(&session)).await);
    }
    let all: Vec<_> = handles.iter().collect();
    assert_eq!(a.keep(&session.id, &all).await.unwrap().lost, []);
    assert_eq!(a.look(&session.id).await.unwrap().1.len(), 230);
    place.delete(&key("k142")).await;
    let lost = a.keep(&session.id, &all).await.unwrap().lost;
    assert_eq!(lost, [(handles[142].key.clone(), handles[142].token)]);
    let lease = place.found(&key("k000")).await.unwrap().lease();
    place.raw.lease_revoke(lease).await.unwrap();
    assert!(a.keep(&session.id, &all).await.is_none(), "then all are lost");
    assert_eq!(a.look(&session.id).await, None);
}

/// More locks than one transaction looks at, each in a namespace of its own, and many in two
/// namespaces taken in turn: both are kept and looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_08_looks_fit_into_transactions_however_many_namespaces_there_are() {
    use dlock_conformance::kit::key_in;

    let mut place = Place::new().await;
    let a = place.caller().await;
    for spread in [130, 2] {
        let session = a.open("worker", long()).await;
        let mut handles = Vec::new();
        for n in 0..130 {
            let key = key_in(&format!("ns{}", n % spread), &format!("k{spread}-{n}"));
            handles.push(a.take(&key, &of(&session)).await);
        }
        let all: Vec<_> = handles.iter().collect();
        assert_eq!(a.keep(&session.id, &all).await.unwrap().lost, []);
        assert_eq!(a.look(&session.id).await.unwrap().1.len(), 130);
    }
}

/// A record that nobody can read is an incident that names its key, wherever it is met; the rest of
/// the store goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_corrupt_record_is_an_incident_that_names_its_key() {
    use dlock_conformance::kit::{attempt, private};
    use dlock_domain::{ErrorKind, Invariant};
    use dlock_ports::Consistency;

    let mut place = Place::new().await;
    let a = place.caller().await;
    let at = place.at(&key("k"));
    place.raw.put(at.clone(), "{\"v\":1", None).await.unwrap();
    let kind = ErrorKind::InvariantViolated(Invariant::RecordsReadable);
    for consistency in [Consistency::Follower, Consistency::Linearizable] {
        let error = a.backend.locks.read(&key("k"), consistency, a.by()).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.detail().contains(&at), "{error}");
    }
    let error = a.insert(&key("k"), &private("worker"), attempt()).await.unwrap_err();
    assert_eq!(error.kind(), kind);
    a.take(&key("other"), &private("worker")).await;
    a.revoke(&key("k"), None).await;
    a.take(&key("k"), &private("worker")).await;
}
