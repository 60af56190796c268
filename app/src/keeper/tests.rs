//! The keeper against a service that a test scripts, on a clock that it moves.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use async_trait::async_trait;
use dlock_domain::{
    ErrorKind, LockError, LockHandle, LockInfo, LockName, LockOutcome, Namespace, OwnerId, Result,
    TokenFloor, Ttl,
};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_ports::{
    AcquireRequest, Acquired, Current, HeldGrant, Kept, ListRequest, Page, Raised, Released,
    RevokeRequest, SessionRef,
};
use tokio::sync::watch::Receiver;

use super::*;

const TTL: Duration = Duration::from_secs(3);

/// What the scripted service does with the next keep-alive; when the script is over it answers.
enum Reply {
    Fail,
    Expired,
    Hang,
    Panic,
    Lose(Vec<(LockKey, FencingToken)>),
}

/// A service that keeps one session and answers as scripted.
struct Scripted {
    clock: ManualClock,
    script: Mutex<VecDeque<Reply>>,
    calls: watch::Sender<Vec<Vec<(LockKey, FencingToken)>>>,
    stored: Mutex<Vec<HeldGrant>>,
    looks: watch::Sender<u32>,
    forgotten: watch::Sender<Vec<AttemptId>>,
}

fn unused<T>() -> Result<T> {
    Err(LockError::new(ErrorKind::Unsupported, "not part of this script"))
}

fn session(clock: &ManualClock) -> Session {
    let ttl = Ttl::from_duration(TTL).unwrap();
    Session {
        id: SessionId::from_bits(7),
        owner: OwnerId::new("someone").unwrap(),
        ttl,
        client_deadline: clock.now().holder_deadline(ttl, ttl),
    }
}

fn key(number: u64) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(&format!("lock-{number:04}")).unwrap())
}

fn token(number: u64) -> FencingToken {
    FencingToken::from_user(number).unwrap()
}

#[async_trait]
impl LockService for Scripted {
    async fn open_session(&self, _: OwnerId, _: Ttl) -> Result<Session> {
        unused()
    }
    async fn keep_session(&self, _: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept> {
        let session = session(&self.clock);
        let next = self.script.lock().unwrap().pop_front();
        self.calls.send_modify(|calls| calls.push(held.to_vec()));
        match next {
            None => Ok(Kept { session, lost: Vec::new() }),
            Some(Reply::Lose(lost)) => Ok(Kept { session, lost }),
            Some(Reply::Fail) => Err(LockError::contention("scripted")),
            Some(Reply::Expired) => Err(LockError::session_expired()),
            Some(Reply::Hang) => std::future::pending().await,
            Some(Reply::Panic) => panic!("scripted"),
        }
    }
    async fn look_session(&self, _: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        self.looks.send_modify(|looks| *looks += 1);
        Ok((session(&self.clock), self.stored.lock().unwrap().clone()))
    }
    async fn close_session(&self, _: &SessionId) -> Result<bool> {
        unused()
    }
    async fn try_acquire(&self, _: AcquireRequest) -> Result<Acquired> {
        unused()
    }
    async fn acquire(&self, _: AcquireRequest) -> Result<Acquired> {
        unused()
    }
    async fn renew(&self, _: &LockKey, _: FencingToken, _: &SessionId) -> Result<LockHandle> {
        unused()
    }
    async fn release(&self, _: &LockKey, _: FencingToken, _: &SessionId) -> Result<Released> {
        unused()
    }
    async fn forget(&self, _: &LockKey, _: &SessionRef, attempt: AttemptId) -> Result<Released> {
        self.stored.lock().unwrap().retain(|grant| grant.attempt != attempt);
        self.forgotten.send_modify(|forgotten| forgotten.push(attempt));
        Ok(Released { released: true, current: Current::None })
    }
    async fn inspect(&self, _: &LockKey) -> Result<Option<LockInfo>> {
        unused()
    }
    async fn list(&self, _: ListRequest) -> Result<Page> {
        unused()
    }
    async fn revoke(&self, _: &LockKey, _: RevokeRequest) -> Result<LockOutcome> {
        unused()
    }
    async fn raise_floor(&self, _: &Namespace, _: TokenFloor) -> Result<Raised> {
        unused()
    }
}

/// A keeper, its service and its clock.
struct Bench {
    clock: ManualClock,
    service: Arc<Scripted>,
    keeper: Keeper,
    state: Receiver<KeeperState>,
    calls: Receiver<Vec<Vec<(LockKey, FencingToken)>>>,
}

impl Bench {
    fn new(held: u64, script: impl IntoIterator<Item = Reply>) -> Self {
        let clock = ManualClock::new();
        let service = Arc::new(Scripted {
            clock: clock.clone(),
            script: Mutex::new(script.into_iter().collect()),
            calls: watch::Sender::new(Vec::new()),
            stored: Mutex::default(),
            looks: watch::Sender::new(0),
            forgotten: watch::Sender::new(Vec::new()),
        });
        let keeper = Keeper::start(
            service.clone(),
            session(&clock),
            (1..=held).map(|number| (key(number), token(number))).collect(),
            Arc::new(clock.clone()),
            Arc::new(SeededEntropy::new(1)),
        );
        let (state, calls) = (keeper.watch(), service.calls.subscribe());
        Self { clock, service, keeper, state, calls }
    }

    /// Moves time on in small steps, with room for the tasks in between.
    async fn pass(&self, time: Duration) {
        for _ in 0..time.as_millis() / 10 {
            self.clock.advance(Duration::from_millis(10));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn calls(&self) -> usize {
        self.calls.borrow().len()
    }

    fn loss(&self, number: u64) -> Option<LossReason> {
        self.state.borrow().loss(&key(number))
    }
}

#[tokio::test]
async fn keeps_a_session_for_many_lifetimes_three_times_in_each() {
    let bench = Bench::new(1, []);
    bench.pass(TTL * 10).await;
    assert_eq!(bench.loss(1), None);
    assert!((27..=34).contains(&bench.calls()), "{}", bench.calls());
    assert!(bench.keeper.deadline(&key(1)).unwrap() > bench.clock.now());
    assert!(bench.calls.borrow().iter().all(|held| held == &[(key(1), token(1))]));
}

#[tokio::test]
async fn c13_two_failed_renews_are_not_loss() {
    let bench = Bench::new(1, [Reply::Fail, Reply::Fail]);
    bench.pass(TTL * 2).await;
    assert_eq!(bench.loss(1), None);
    assert!(bench.keeper.deadline(&key(1)).unwrap() > bench.clock.now());
}

#[tokio::test]
async fn c12_keep_alives_that_are_never_answered_lose_at_the_deadline_and_not_earlier() {
    let bench = Bench::new(1, std::iter::repeat_with(|| Reply::Hang).take(50));
    let deadline = bench.keeper.deadline(&key(1)).unwrap();
    let before = deadline.since(bench.clock.now()) - Duration::from_millis(20);
    bench.pass(before).await;
    assert_eq!(bench.loss(1), None);
    bench.pass(Duration::from_millis(30)).await;
    assert_eq!(bench.loss(1), Some(LossReason::DeadlinePassed));
    assert_eq!(bench.state.borrow().lost, Some(LossReason::DeadlinePassed));
    assert_eq!(bench.keeper.deadline(&key(1)), None);
    // A call that hangs is given up and made again: one dead connection is not the end.
    assert!(bench.calls() >= 2);
    let calls = bench.calls();
    bench.pass(TTL).await;
    assert_eq!(bench.calls(), calls, "what is lost is not renewed");
}

#[tokio::test]
async fn c19_a_sleep_beyond_the_deadline_is_loss_whatever_the_store_would_say() {
    let bench = Bench::new(1, []);
    bench.pass(Duration::from_millis(20)).await;
    bench.clock.advance(TTL * 2);
    let mut state = bench.state.clone();
    let lost = state.wait_for(|state| state.lost.is_some()).await.unwrap().lost;
    assert_eq!(lost, Some(LossReason::DeadlinePassed));
    assert_eq!(bench.calls(), 0);
}

#[tokio::test]
async fn c15_exactly_the_lost_grant_is_reported_then_the_session() {
    let bench = Bench::new(3, [Reply::Lose(vec![(key(2), token(2))])]);
    bench.pass(TTL / 2).await;
    assert_eq!([1, 2, 3].map(|n| bench.loss(n)), [None, Some(LossReason::Gone), None]);
    bench.service.script.lock().unwrap().push_back(Reply::Expired);
    bench.pass(TTL / 2).await;
    assert_eq!(bench.calls.borrow().last().unwrap().len(), 2, "the lost one is not listed");
    assert_eq!([1, 3].map(|n| bench.loss(n)), [Some(LossReason::SessionGone); 2]);
    assert_eq!(bench.loss(2), Some(LossReason::Gone));
}

#[tokio::test]
async fn c17_a_panic_is_counted_and_survived() {
    let bench = Bench::new(1, [Reply::Panic, Reply::Fail, Reply::Panic]);
    bench.pass(TTL * 2).await;
    assert_eq!(bench.state.borrow().restarts, 2);
    assert_eq!(bench.loss(1), None);
    assert!(bench.keeper.deadline(&key(1)).unwrap() > bench.clock.now());
}

#[tokio::test]
async fn c17_a_task_that_always_panics_is_loss_and_never_silent() {
    let bench = Bench::new(1, std::iter::repeat_with(|| Reply::Panic).take(1_000));
    bench.pass(TTL).await;
    assert_eq!(bench.loss(1), Some(LossReason::DeadlinePassed));
    assert!(bench.calls() < 200, "it does not spin: {}", bench.calls());
}

#[tokio::test]
async fn many_grants_are_split_and_a_failed_part_is_repeated_alone() {
    let bench = Bench::new(250, []);
    bench.pass(TTL / 2).await;
    let sizes: Vec<usize> = bench.calls.borrow().iter().map(Vec::len).collect();
    assert_eq!(sizes, [100, 100, 50]);
    bench.service.script.lock().unwrap().extend([Reply::Lose(Vec::new()), Reply::Fail]);
    bench.pass(TTL / 2).await;
    let sizes: Vec<usize> = bench.calls.borrow().iter().skip(3).map(Vec::len).collect();
    assert_eq!(sizes, [100, 100, 100, 50]);
    let repeated: Vec<_> = bench.calls.borrow()[4..6].to_vec();
    assert_eq!(repeated[0], repeated[1]);
}

#[tokio::test]
async fn only_a_reply_that_listed_a_grant_moves_its_deadline() {
    let bench = Bench::new(1, []);
    bench.pass(TTL / 2).await;
    let first = bench.keeper.deadline(&key(1)).unwrap();
    let own = bench.clock.now().after(Duration::from_millis(1_500));
    bench.keeper.add(key(2), token(2), own);
    assert_eq!(bench.keeper.deadline(&key(2)), Some(own));
    assert_eq!(bench.keeper.deadline(&key(1)), Some(first));
    bench.pass(TTL / 2).await;
    assert!(bench.keeper.deadline(&key(2)).unwrap() > own);
    bench.keeper.remove(&key(1));
    assert_eq!(bench.keeper.deadline(&key(1)), None);
    bench.pass(TTL).await;
    assert_eq!(bench.calls.borrow().last().unwrap(), &[(key(2), token(2))]);
}

#[tokio::test]
async fn a_grant_added_close_to_its_deadline_is_kept_early() {
    let bench = Bench::new(0, []);
    bench.keeper.add(key(1), token(1), bench.clock.now().after(Duration::from_millis(200)));
    bench.pass(Duration::from_millis(100)).await;
    assert_eq!(bench.calls(), 1);
    assert_eq!(bench.loss(1), None);
}

#[tokio::test]
async fn a_grant_added_to_a_lost_session_is_lost() {
    let bench = Bench::new(1, [Reply::Expired]);
    bench.pass(TTL / 2).await;
    bench.keeper.add(key(2), token(2), bench.clock.now().after(TTL));
    assert_eq!(bench.keeper.deadline(&key(2)), None);
    assert_eq!(bench.loss(2), Some(LossReason::SessionGone));
}

#[tokio::test]
async fn a_session_without_grants_is_kept_for_its_waiters() {
    let bench = Bench::new(0, []);
    bench.pass(TTL * 2).await;
    assert!(bench.calls() >= 5);
    assert_eq!(bench.state.borrow().lost, None);
}

#[tokio::test]
async fn trap_37_nothing_renews_after_stop_or_drop() {
    let bench = Bench::new(1, []);
    bench.pass(TTL).await;
    let Bench { clock, service, keeper, calls, .. } = bench;
    keeper.stop().await;
    let made = calls.borrow().len();
    assert!(made > 0);
    clock.advance(TTL);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(calls.borrow().len(), made);
    assert_eq!(Arc::strong_count(&service), 1, "its task is gone");

    let bench = Bench::new(1, [Reply::Hang]);
    bench.pass(TTL / 2).await;
    let Bench { service, keeper, calls, mut state, .. } = bench;
    drop(keeper);
    // The channel closes when the last task has let go of it.
    while state.changed().await.is_ok() {}
    assert_eq!(calls.borrow().len(), 1);
    assert_eq!(Arc::strong_count(&service), 1);
}

#[tokio::test]
async fn trap_13_strays_are_released_and_expected_grants_are_not() {
    let bench = Bench::new(1, []);
    let stored = |number: u64| HeldGrant {
        key: key(number),
        token: token(number),
        attempt: AttemptId::from_bits(u128::from(number)),
    };
    let pending = bench.keeper.expect(AttemptId::from_bits(2));
    *bench.service.stored.lock().unwrap() = vec![stored(1), stored(2), stored(3)];
    bench.pass(TTL * 4).await;
    assert!(*bench.service.looks.borrow() >= 3);
    assert_eq!(*bench.service.forgotten.borrow(), [AttemptId::from_bits(3)]);
    drop(pending);
    bench.pass(TTL * 4).await;
    assert_eq!(*bench.service.forgotten.borrow(), [3, 2].map(AttemptId::from_bits));
    assert_eq!(bench.loss(1), None);
}
