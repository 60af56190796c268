//! Many at once, through both: whatever the order, the promises hold.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
};

use dlock_domain::{ErrorKind, FencingToken, LockOutcome, TokenFloor};
use dlock_ports::{Attempt, InsertRequest, Intent};
use tokio::{sync::Barrier, task::JoinSet};

use crate::{
    Harness,
    kit::{Caller, a, attempt, b, granted, key, long, ns, of, private, session_id},
    notes::lacks,
};

/// Runs `count` tasks that begin together, A's and B's in turn; their results.
async fn together<H, T, F>(h: &H, count: usize, task: impl Fn(usize, Caller) -> F) -> Vec<T>
where
    H: Harness,
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let callers = [a(h), b(h)];
    let start = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for n in 0..count {
        let (work, start) = (task(n, callers[n % 2].clone()), Arc::clone(&start));
        tasks.spawn(async move {
            start.wait().await;
            work.await
        });
    }
    let mut results = Vec::with_capacity(count);
    while let Some(done) = tasks.join_next().await {
        results.push(done.expect("no task fails"));
    }
    results
}

/// INV-01, INV-02: of 32 that insert one key exactly one is granted, round after round, and its
/// token exceeds the one before.
pub async fn inv01_of_many_exactly_one_is_granted<H: Harness>(h: &H) {
    let watcher = a(h);
    let mut last = None;
    for _ in 0..10 {
        let answers = together(h, 32, |_, caller| async move {
            caller.insert(&key("k"), &private("contender"), attempt()).await
        })
        .await;
        let mut grants = Vec::new();
        for answer in answers {
            match answer.expect("every shot is answered") {
                Attempt::Granted(handle) => grants.push(handle),
                Attempt::Held(_) => {}
            }
        }
        assert_eq!(grants.len(), 1, "INV-01");
        assert!(Some(grants[0].token) > last, "INV-04");
        last = Some(grants[0].token);
        let seen = watcher.read(&key("k")).await.expect("held");
        assert_eq!((seen.token, seen.session), (grants[0].token, Some(grants[0].session)));
        assert!(watcher.release(&grants[0]).await);
    }
}

/// C20 at once: one attempt, sent sixteen times, is one grant with one token.
pub async fn c20_repeats_at_once_are_one_grant<H: Harness>(h: &H) {
    let caller = a(h);
    let session = caller.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        let handles = together(h, 16, |_, caller| {
            let holder = holder.clone();
            async move { granted(caller.insert(&key("k"), &holder, named).await) }
        })
        .await;
        for handle in &handles {
            assert_eq!((handle.token, handle.session), (handles[0].token, handles[0].session));
        }
        assert_eq!(caller.look(&handles[0].session).await.expect("live").1.len(), 1);
        assert!(caller.release(&handles[0]).await);
        assert_eq!(caller.read(&key("k")).await, None);
    }
}

/// C46: contenders on one key. One holder at a time, and tokens rise in the order of the grants.
pub async fn c46_tokens_rise_in_grant_order<H: Harness>(h: &H) {
    let inside = Arc::new(AtomicU32::new(0));
    let order: Arc<Mutex<Vec<FencingToken>>> = Arc::default();
    together(h, 8, |_, caller| {
        let (inside, order) = (Arc::clone(&inside), Arc::clone(&order));
        async move {
            let mut won = 0;
            while won < 15 {
                let shot = caller.insert(&key("k"), &private("contender"), attempt()).await;
                let Ok(Attempt::Granted(handle)) = shot else {
                    tokio::task::yield_now().await;
                    continue;
                };
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "INV-01");
                order.lock().expect("no task fails").push(handle.token);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                assert!(caller.release(&handle).await);
                won += 1;
            }
        }
    })
    .await;
    let order = order.lock().expect("no task fails");
    assert_eq!(order.len(), 8 * 15);
    assert!(order.is_sorted_by(|earlier, later| earlier < later), "INV-04: {order:?}");
}

/// A close that races inserts: afterwards the session holds nothing, whatever was granted before.
pub async fn closing_while_acquiring_leaves_nothing_held<H: Harness>(h: &H) {
    let caller = a(h);
    for round in 0..25 {
        let session = caller.open("worker", long()).await;
        together(h, 6, |n, caller| {
            let session = session.clone();
            async move {
                if n == round % 6 {
                    assert!(caller.close(&session.id).await);
                    return;
                }
                let answer = caller.insert(&key(&format!("k{n}")), &of(&session), attempt()).await;
                match answer {
                    Ok(Attempt::Granted(_)) => {}
                    Err(error) if error.kind() == ErrorKind::SessionExpired => {}
                    other => panic!("granted or too late, not {other:?}"),
                }
            }
        })
        .await;
        for n in 0..6 {
            assert_eq!(caller.read(&key(&format!("k{n}"))).await, None, "nobody can claim it");
        }
        assert_eq!(caller.look(&session.id).await, None);
    }
}

/// A release that races inserts: it happens, and at most one comes after it.
pub async fn releasing_while_acquiring<H: Harness>(h: &H) {
    let caller = a(h);
    for _ in 0..25 {
        let handle = caller.take(&key("k"), &private("holder")).await;
        let answers = together(h, 6, |n, caller| {
            let handle = handle.clone();
            async move {
                if n == 3 {
                    assert!(caller.release(&handle).await);
                    return None;
                }
                match caller.insert(&key("k"), &private("contender"), attempt()).await {
                    Ok(Attempt::Granted(next)) => Some(next),
                    Ok(Attempt::Held(_)) => None,
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        let grants: Vec<_> = answers.into_iter().flatten().collect();
        assert!(grants.len() <= 1, "INV-01");
        for next in &grants {
            assert!(next.token > handle.token, "INV-04");
            assert!(caller.release(next).await);
        }
        assert_eq!(caller.read(&key("k")).await, None);
    }
}

/// INV-09: a forget that races its own attempt: afterwards the attempt holds nothing and never
/// will, whichever came first.
pub async fn inv09_forgetting_while_acquiring_leaves_nothing_held<H: Harness>(h: &H) {
    let caller = a(h);
    let session = caller.open("worker", long()).await;
    for round in 0..40 {
        let holder = if round % 2 == 0 { of(&session) } else { private("worker") };
        let named = attempt();
        together(h, 4, |n, caller| {
            let holder = holder.clone();
            async move {
                if n == round % 4 {
                    caller.forget(&key("k"), &holder, named).await;
                    return;
                }
                match caller.insert(&key("k"), &holder, named).await {
                    Ok(Attempt::Granted(_)) => {}
                    Err(error) if error.field() == Some("attempt_id") => {}
                    other => panic!("granted or settled, not {other:?}"),
                }
            }
        })
        .await;
        assert_eq!(caller.read(&key("k")).await, None);
    }
    assert_eq!(caller.look(&session.id).await.expect("open").1, []);
}

/// INV-09: inserts dropped at any await. What they left is settled by `forget`, then the lock is
/// free, and the store goes on.
pub async fn inv09_dropped_inserts_are_settled<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for round in 0..120_u32 {
        let holder = if round % 2 == 0 { of(&session) } else { private("worker") };
        let named = attempt();
        let request = InsertRequest {
            key: key("k"),
            holder: holder.clone(),
            attempt: named,
            intent: Intent::Acquire,
        };
        {
            let mut shot = pin!(a.backend.locks.try_insert(request, a.by()));
            for _ in 0..=round % 4 {
                let ready = poll_fn(|context| Poll::Ready(shot.as_mut().poll(context).is_ready()));
                if ready.await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        b.forget(&key("k"), &holder, named).await;
        assert_eq!(a.read(&key("k")).await, None, "round {round}");
    }
    assert_eq!(a.look(&session.id).await.expect("open").1, []);
    a.take(&key("k"), &of(&session)).await;
}

/// Dropped calls of every other kind break nothing either.
pub async fn dropped_calls_break_nothing<H: Harness>(h: &H) {
    /// Begins a call and drops it.
    async fn begin<T>(call: impl Future<Output = T>) {
        let mut call = pin!(call);
        poll_fn(|context| {
            drop(call.as_mut().poll(context));
            Poll::Ready(())
        })
        .await;
    }
    let (a, b) = (a(h), b(h));
    for _ in 0..40 {
        let session = a.open("worker", long()).await;
        let handle = a.take(&key("k"), &of(&session)).await;
        begin(a.extend(&handle)).await;
        begin(a.keep(&session.id, &[&handle])).await;
        begin(a.look(&session.id)).await;
        begin(a.read(&key("k"))).await;
        begin(a.reap(10)).await;
        assert_eq!(b.extend(&handle).await.expect("live").token, handle.token);
        begin(a.release(&handle)).await;
        b.release(&handle).await;
        assert_eq!(a.read(&key("k")).await, None);
        // It may still be done when the next round has begun, so it names whom it means.
        begin(a.revoke(&key("k"), Some(handle.token))).await;
        begin(a.close(&session.id)).await;
        b.close(&session.id).await;
        assert_eq!(a.look(&session.id).await, None);
    }
}

/// Of two that end one grant at once exactly one did it.
pub async fn a_grant_ends_once<H: Harness>(h: &H) {
    let caller = a(h);
    for round in 0..30 {
        let named = attempt();
        let handle = caller.take_as(&key("k"), &private("holder"), named).await;
        let ended = together(h, 4, |n, caller| {
            let handle = handle.clone();
            async move {
                match (n + round) % 4 {
                    0 => caller.release(&handle).await,
                    1 => matches!(
                        caller.revoke(&handle.key, Some(handle.token)).await,
                        LockOutcome::Revoked { .. }
                    ),
                    2 => caller.forget(&handle.key, &private("holder"), named).await,
                    _ => caller.release(&handle).await,
                }
            }
        })
        .await;
        assert_eq!(ended.into_iter().filter(|ended| *ended).count(), 1, "round {round}");
        assert_eq!(caller.read(&key("k")).await, None);
    }
}

/// A renew that races a revoke: whatever it answered, the grant is gone afterwards.
pub async fn renewing_while_revoking_revives_nothing<H: Harness>(h: &H) {
    let caller = a(h);
    for round in 0..25 {
        let session = caller.open("worker", long()).await;
        let handle = caller.take(&key("k"), &of(&session)).await;
        together(h, 4, |n, caller| {
            let (handle, session) = (handle.clone(), session.clone());
            async move {
                if n == round % 4 {
                    let outcome = caller.revoke(&handle.key, None).await;
                    assert!(matches!(outcome, LockOutcome::Revoked { .. }), "{outcome:?}");
                } else if n % 2 == 0 {
                    caller.extend(&handle).await;
                } else {
                    assert!(caller.keep(&session.id, &[&handle]).await.is_some());
                }
            }
        })
        .await;
        assert_eq!(caller.extend(&handle).await, None);
        assert_eq!(caller.read(&key("k")).await, None);
        assert!(caller.close(&session.id).await);
    }
}

/// Opening one id many times at once is one session.
pub async fn opening_one_id_at_once_is_one_session<H: Harness>(h: &H) {
    let caller = a(h);
    for _ in 0..10 {
        let id = session_id();
        together(h, 8, |_, caller| async move {
            let session = caller.try_open("worker", long(), Some(id)).await.expect("opens");
            assert_eq!(session.id, id);
        })
        .await;
        assert!(caller.close(&id).await);
        assert!(!caller.close(&id).await);
    }
}

/// Sessions that take the same keys in opposite orders, are kept, and are closed: nothing gets
/// stuck, nothing is left.
pub async fn crossing_orders_do_not_deadlock<H: Harness>(h: &H) {
    together(h, 8, |n, caller| async move {
        for round in 0..8 {
            let session = caller.open("worker", long()).await;
            let mut handles = Vec::new();
            for at in 0..4 {
                let at = if n % 2 == 0 { at } else { 3 - at };
                let key = key(&format!("k{at}"));
                match caller.insert(&key, &of(&session), attempt()).await {
                    Ok(Attempt::Granted(handle)) => handles.push(handle),
                    Ok(Attempt::Held(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            let listed: Vec<_> = handles.iter().collect();
            let kept = caller.keep(&session.id, &listed).await.expect("live");
            assert_eq!(kept.lost, []);
            if round % 2 == 0 {
                for handle in &handles {
                    assert!(caller.release(handle).await);
                }
            }
            assert!(caller.close(&session.id).await);
        }
    })
    .await;
    let caller = a(h);
    for at in 0..4 {
        assert_eq!(caller.read(&key(&format!("k{at}"))).await, None);
    }
}

/// INV-04: a raise that races inserts. Whoever began after its answer is above the floor, and no
/// grant from under the floor is live.
pub async fn inv04_raising_while_acquiring<H: Harness>(h: &H) {
    let caller = a(h);
    assert_eq!(caller.backend.floors.is_some(), h.expected().floors);
    if caller.backend.floors.is_none() {
        lacks("floors");
    }
    for round in 1..=15_u64 {
        let at_least = round * 10_000;
        let floors = together(h, 6, |n, caller| async move {
            if n != 2 {
                for _ in 0..3 {
                    let key = key(&format!("k{n}"));
                    let shot = caller.insert(&key, &private("worker"), attempt()).await;
                    shot.expect("answered");
                }
                return None;
            }
            let floors = caller.backend.floors.as_ref()?;
            let floor = TokenFloor::new(at_least).expect("a floor");
            let raised = floors.raise(&ns("default"), floor, caller.by()).await;
            Some(raised.expect("raised").floor)
        })
        .await;
        let floor = floors.into_iter().flatten().next();
        assert_eq!(floor.is_some(), h.expected().floors);
        for n in 0..6 {
            let name = key(&format!("k{n}"));
            if let (Some(floor), Some(seen)) = (floor, caller.read(&name).await) {
                assert!(floor.admits(seen.token), "INV-04: {} under {floor}", seen.token);
            }
            caller.revoke(&name, None).await;
            let next = caller.take(&name, &private("next")).await;
            assert!(floor.is_none_or(|floor| floor.admits(next.token)));
            assert!(caller.release(&next).await);
        }
    }
}
