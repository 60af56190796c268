//! Those who come too late: an ended grant is never revived, and its holder touches nobody
//! (INV-06).

use std::time::Duration;

use dlock::{AcquireRequest, Current, ErrorKind, LockService, OwnerId, SessionRef, Ttl};
use dlock_faults::Direction::ToServer;

use crate::world::{LONG, World, granted, key, soon, until};

/// A grant that nobody keeps, through the proxy.
fn for_a_second(name: &str) -> AcquireRequest {
    let (owner, ttl) = (OwnerId::new("holder").unwrap(), Ttl::from_millis(1_000).unwrap());
    AcquireRequest {
        key: key(name),
        session: SessionRef::Private { owner, ttl },
        attempt: None,
        max_wait: Duration::ZERO,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c14_a_renewal_that_arrives_after_the_lease_revives_nothing() {
    let world = World::new();
    let (client, _) = world.holder_on_boot_clock(LONG);
    let grant = granted(&client, for_a_second("k")).await;
    // It leaves in time, and is held up on the way.
    world.proxy.delay(ToServer, Duration::from_secs(3_600));
    let renewal = tokio::spawn({
        let client = client.clone();
        async move { client.renew(&grant.key, grant.token, &grant.session).await }
    });
    until("the lease ends", || world.holder("k").is_none()).await;
    world.proxy.pass();
    let lost = soon(renewal).await.unwrap().unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::LockLost, "{lost}");
    assert_eq!(world.holder("k"), None, "though nobody took it");
    let released = client.release(&key("k"), grant.token, &grant.session).await.unwrap();
    assert!(!released.released);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c22_a_holder_that_expired_renews_and_releases_nothing_of_its_successor() {
    let world = World::new();
    let (client, _) = world.holder_on_boot_clock(LONG);
    let old = granted(&client, for_a_second("k")).await;
    let next = soon(world.neighbour(LONG).lock("k").wait(LONG).acquire()).await.unwrap();
    assert!(next.token() > old.token);
    let renewed = client.renew(&old.key, old.token, &old.session).await.unwrap_err();
    assert_eq!(renewed.kind(), ErrorKind::LockLost, "{renewed}");
    let released = client.release(&old.key, old.token, &old.session).await.unwrap();
    assert_eq!((released.released, released.current), (false, Current::Other));
    assert_eq!(world.token("k"), Some(next.token().get()));
    assert!(next.is_held());
    next.release().await.unwrap();
    assert_eq!(world.holder("k"), None);
}
