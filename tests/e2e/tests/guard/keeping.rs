//! Keeping through a bad line: what is loss, and what is not (INV-03, INV-07).

use std::time::Duration;

use dlock::{Clock, keeper::LossReason};
use dlock_faults::Direction::ToClient;

use crate::world::{LONG, World, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c12_keep_alives_that_are_accepted_and_never_answered_are_loss_by_the_deadline() {
    let world = World::new();
    let desk = world.holder_on_own_clock(4);
    let lock = desk.guard("k").await;
    let (deadline, arrived) = (desk.clock.now().after(lock.remaining()), world.proxy.counts());
    world.proxy.blackhole(ToClient);
    let told = tokio::spawn({
        let (cancelled, clock) = (lock.cancellation(), desk.clock.clone());
        async move {
            cancelled.cancelled().await;
            clock.now()
        }
    });
    // Not earlier: a call without an answer is not loss.
    let step = LONG / 200;
    while desk.clock.now() < deadline.before(step * 2) {
        assert!(lock.is_held() && !told.is_finished());
        desk.pass(step).await;
    }
    // Not later: it is told before its moment, and nobody says "held" after it.
    desk.clock.advance(deadline.since(desk.clock.now()).saturating_sub(Duration::from_millis(1)));
    let loss = soon(lock.lost()).await;
    assert_eq!((loss.token, loss.reason), (lock.token(), LossReason::DeadlinePassed));
    assert!(soon(told).await.unwrap() < deadline);
    assert!(!lock.is_held());
    let counts = world.proxy.counts();
    assert!(counts.to_server > arrived.to_server, "the server took the keep-alives");
    assert!(counts.swallowed_to_client > 0, "and answered them");
    // What the server thinks is no comfort to a holder that cannot hear it.
    assert_eq!(world.token("k"), Some(lock.token().get()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c13_two_renewals_that_fail_are_not_loss() {
    let world = World::new();
    // Each try of the client's own is a renewal of the keeper's.
    let desk = world.holder_on_own_clock(1);
    let lock = desk.guard("k").await;
    let token = lock.token();
    for round in 0..3 {
        world.proxy.blackhole(ToClient);
        desk.until_a_keep_alive_is_due();
        for _ in 0..2 {
            let swallowed = world.proxy.counts().swallowed_to_client;
            desk.drive(world.proxy.counted(|counts| counts.swallowed_to_client > swallowed)).await;
            // The server renewed it; its holder hears the line break.
            world.proxy.reset_all();
        }
        assert!(lock.is_held(), "round {round}");
        world.proxy.pass();
        let before = lock.remaining();
        let kept = async {
            while lock.remaining() <= before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        desk.drive(kept).await;
        assert!(lock.is_held() && !lock.cancellation().is_cancelled(), "round {round}");
    }
    assert_eq!((lock.token(), world.token("k")), (token, Some(token.get())));
    lock.release().await.unwrap();
    assert_eq!(world.holder("k"), None);
}
