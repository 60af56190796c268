//! T-032: revoking ends the grant and raises the floor in one transaction.

use dlock_conformance::kit::{key, private};
use dlock_domain::LockOutcome;

use crate::Place;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t032_a_revoke_deletes_and_raises_the_floor_in_one_transaction() {
    let mut place = Place::new().await;
    let a = place.caller().await;
    let handle = a.take(&key("k"), &private("worker")).await;
    let LockOutcome::Revoked { previous, floor } = a.revoke(&key("k"), Some(handle.token)).await
    else {
        panic!("a held lock is revoked")
    };
    assert_eq!(previous, handle.token);
    assert!(floor.get() > previous.get());
    // The floor is the record's own revision (trap 16), so both came of one transaction.
    let at = format!("{}/default/floor/k", place.prefix);
    let record = place.raw.get(at, None).await.unwrap();
    let record = record.kvs().first().unwrap();
    assert_eq!(u64::try_from(record.mod_revision()).unwrap(), floor.get());
    let text = String::from_utf8_lossy(record.value()).into_owned();
    assert!(text.contains("operator") && text.contains("the holder is stuck"), "{text}");
    assert!(place.found(&key("k")).await.is_none());
    let next = a.take(&key("k"), &private("next")).await;
    assert!(floor.admits(next.token));
}
