//! C21, INV-09, INV-10: ten thousand acquires, dropped at random awaits.

use core::time::Duration;
use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use dlock_client::RemoteLocks;
use dlock_ports::{AcquireRequest, Entropy, LockService, SessionRef};
use tokio::task::JoinSet;

use crate::{
    ServiceHarness,
    dither::dithering,
    kit::{Caller, attempt, key, long},
    service_kit::{alone, config, got, wish},
};

/// How many are dropped before memory is first measured, and as many again after that: by then
/// caches and the allocator's pools have found their size.
const DROPPED: u32 = 10_000;
/// So many ask at once, for so many locks: most of them wait.
const LANES: u32 = 32;
const KEYS: u64 = 8;
/// Half of the calls are made in open sessions, each for at most 2,500 calls in all: a session
/// settles only so many attempts (`max_settled`, 4,096), and a client over a wire settles every one
/// that is dropped. What one beyond that was granted would stay held for as long as its session
/// lives.
const OPEN: u32 = 4;

/// Memory that this process has, in pages.
fn resident_pages() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the kernel tells");
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages")
}

/// Starts an acquire, polls it as often as chance has it, and drops it. A grant that came in time
/// is released.
async fn start_and_drop(front: &dyn LockService, chance: &dyn Entropy, session: &SessionRef) {
    let max_wait = Duration::from_secs(chance.jitter() % 3 * 600);
    let request = wish(&key(&format!("k{}", chance.jitter() % KEYS)), session, max_wait);
    let polls = chance.jitter() % 24;
    let mut acquired = None;
    {
        let mut acquire = pin!(front.acquire(request));
        for _ in 0..=polls {
            let poll = poll_fn(|context| Poll::Ready(acquire.as_mut().poll(context)));
            if let Poll::Ready(answer) = poll.await {
                acquired = Some(answer.expect("nothing is wrong with the store"));
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    if let Some(dlock_ports::Acquired::Granted(handle)) = acquired {
        let released = front.release(&handle.key, handle.token, &handle.session).await;
        assert!(released.expect("release answers").released, "a claimed grant is the caller's");
    }
}

async fn drop_many(
    front: &Arc<dyn LockService>,
    sessions: &[SessionRef],
    chances: &[Arc<dyn Entropy>],
    count: u32,
) {
    let mut lanes = JoinSet::new();
    for (lane, chance) in chances.iter().enumerate() {
        let (front, chance) = (Arc::clone(front), Arc::clone(chance));
        let session = sessions[lane % sessions.len()].clone();
        lanes.spawn(async move {
            for _ in 0..count / LANES {
                start_and_drop(&*front, &*chance, &session).await;
            }
        });
    }
    while let Some(done) = lanes.join_next().await {
        done.expect("no lane fails");
    }
}

/// C21: afterwards nothing is held, nobody waits, nothing is unsettled, no task runs, and memory
/// has not grown with the number of calls.
pub async fn c21_ten_thousand_dropped_acquires<H: ServiceHarness>(h: &H) {
    let store = Caller::new(h, h.backend());
    let served = h.serve(dithering(&h.backend(), h.entropy()), config(h)).await;
    let mut sessions = Vec::new();
    for _ in 0..OPEN {
        let session = served.front.open_session(crate::kit::owner("worker"), long()).await;
        sessions.push(SessionRef::Id(session.expect("a session opens").id));
        sessions.push(alone("worker"));
    }
    let chances: Vec<_> = (0..LANES).map(|_| h.entropy()).collect();
    let at_rest = || {
        let clients = served.client.as_ref().map_or(0, RemoteLocks::under_way);
        let load = served.service.load();
        (clients, load.waiting, load.unsettled) == (0, 0, 0) && load.tasks <= 1
    };

    drop_many(&served.front, &sessions, &chances, DROPPED).await;
    crate::kit::until("the service comes to rest", at_rest).await;
    let before = resident_pages();
    drop_many(&served.front, &sessions, &chances, DROPPED).await;
    crate::kit::until("the service comes to rest", at_rest).await;
    let after = resident_pages();

    for n in 0..KEYS {
        assert_eq!(store.read(&key(&format!("k{n}"))).await, None, "nobody can claim it");
    }
    // A third more and 16 MiB (4,096 pages) is well above what bounded caches still grow by, and
    // below a leak of a task or a connection per call.
    let allowed = before + before / 3 + 4_096;
    assert!(after <= allowed, "from {before} to {after} resident pages");
    for session in &sessions {
        if let SessionRef::Id(id) = session {
            assert_eq!(store.look(id).await.expect("still open").1, []);
        }
    }

    let request = AcquireRequest {
        attempt: Some(attempt()),
        ..wish(&key("k0"), &sessions[0], Duration::ZERO)
    };
    let handle = got(served.front.acquire(request).await);
    let released = served.front.release(&handle.key, handle.token, &handle.session).await;
    assert!(released.expect("release answers").released, "and the service goes on");
}
