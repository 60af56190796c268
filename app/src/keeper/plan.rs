//! When to call next, which deadlines a reply moves, and what is lost: no clock, no task.

use std::{collections::BTreeMap, time::Duration};

use dlock_domain::{Backoff, FencingToken, LockKey, Moment, Ttl};
use dlock_ports::Kept;

use super::{KeeperState, KeptGrant, LossReason};

/// How many grants one call lists; more are split over several.
const CHUNK: usize = 100;

/// Strays are looked for after every so many rounds, about once a lifetime.
const LOOK_EVERY: u64 = 3;

/// What a keeper knows of its session.
#[derive(Debug)]
pub(super) struct Plan {
    ttl: Ttl,
    deadline: Moment,
    grants: BTreeMap<LockKey, KeptGrant>,
    lost: Option<LossReason>,
    /// The round under way: when it began, and which keys it has still to list.
    round: Option<Round>,
    next_call: Moment,
    failures: u32,
    rounds: u64,
    look_wanted: bool,
}

#[derive(Debug)]
struct Round {
    began: Moment,
    rest: Vec<LockKey>,
}

/// A grant that was lost just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) key: LockKey,
    pub(super) token: FencingToken,
    pub(super) reason: LossReason,
}

/// A keep-alive to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// What it lists; only these deadlines can move by its reply.
    pub(super) listed: Vec<(LockKey, FencingToken)>,
    /// When to give up on it and try another: at the latest when the first deadline passes.
    pub(super) limit: Moment,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The session is lost: nothing more.
    End,
    /// Call.
    Call(Call),
    /// Look for strays, until this moment at the latest.
    Look(Moment),
    /// Nothing until this moment.
    Sleep(Moment),
}

impl Plan {
    /// A plan for a session whose lease was set before `now`; `random` is 64 random bits.
    pub(super) fn new(
        ttl: Ttl,
        deadline: Moment,
        held: Vec<(LockKey, FencingToken)>,
        now: Moment,
        random: u64,
    ) -> Self {
        let grants = held
            .into_iter()
            .map(|(key, token)| (key, KeptGrant { token, deadline, lost: None }))
            .collect();
        let mut plan = Self {
            ttl,
            deadline,
            grants,
            lost: None,
            round: None,
            next_call: now,
            failures: 0,
            rounds: 0,
            look_wanted: false,
        };
        plan.schedule(now, now, random);
        plan
    }

    pub(super) fn view(&self) -> KeeperState {
        KeeperState { grants: self.grants.clone(), lost: self.lost, restarts: 0 }
    }

    pub(super) fn deadline(&self, key: &LockKey) -> Option<Moment> {
        self.grants.get(key).filter(|grant| grant.lost.is_none()).map(|grant| grant.deadline)
    }

    /// Whether this very grant is kept and not lost.
    pub(super) fn keeps(&self, key: &LockKey, token: FencingToken) -> bool {
        self.grants.get(key).is_some_and(|grant| grant.token == token && grant.lost.is_none())
    }

    /// Takes a grant on.
    pub(super) fn add(
        &mut self,
        key: LockKey,
        token: FencingToken,
        deadline: Moment,
        now: Moment,
    ) -> Vec<Loss> {
        let lost = self.lost;
        let losses =
            lost.map(|reason| Loss { key: key.clone(), token, reason }).into_iter().collect();
        self.grants.insert(key, KeptGrant { token, deadline, lost });
        if lost.is_none() {
            // Whoever granted it vouches for the session's lease until then.
            self.deadline = self.deadline.max(deadline);
            // After a failure the backoff decides.
            if self.failures == 0 {
                let early = deadline.before(self.third()).max(now);
                self.next_call = self.next_call.min(early);
            }
        }
        losses
    }

    /// Lets a grant go.
    pub(super) fn remove(&mut self, key: &LockKey) -> Vec<Loss> {
        self.grants.remove(key);
        Vec::new()
    }

    /// Marks as lost whatever has passed its deadline. A deadline that has passed is never moved
    /// again, whatever a late reply says (C14).
    pub(super) fn expire(&mut self, now: Moment) -> Vec<Loss> {
        if self.lost.is_none() && now >= self.deadline {
            self.lost = Some(LossReason::DeadlinePassed);
        }
        let session = self.lost;
        self.lose(|_, grant| {
            session.or_else(|| (now >= grant.deadline).then_some(LossReason::DeadlinePassed))
        })
    }

    /// The store says that the session is not there.
    pub(super) fn session_gone(&mut self) -> Vec<Loss> {
        let reason = *self.lost.get_or_insert(LossReason::SessionGone);
        self.lose(|_, _| Some(reason))
    }

    fn lose(&mut self, judge: impl Fn(&LockKey, &KeptGrant) -> Option<LossReason>) -> Vec<Loss> {
        let mut losses = Vec::new();
        for (key, grant) in self.grants.iter_mut().filter(|(_, grant)| grant.lost.is_none()) {
            if let Some(reason) = judge(key, grant) {
                grant.lost = Some(reason);
                losses.push(Loss { key: key.clone(), token: grant.token, reason });
            }
        }
        losses
    }

    /// What to do at `now`; call [`expire`](Self::expire) first.
    pub(super) fn step(&mut self, now: Moment) -> Step {
        if self.lost.is_some() {
            return Step::End;
        }
        if now >= self.next_call {
            return Step::Call(self.call(now));
        }
        let wake = self.next_call.min(self.first_deadline());
        if std::mem::take(&mut self.look_wanted) {
            return Step::Look(wake);
        }
        Step::Sleep(wake)
    }

    fn call(&mut self, now: Moment) -> Call {
        let grants = &self.grants;
        let live = |key: &LockKey| grants.get(key).filter(|grant| grant.lost.is_none());
        let round = self.round.get_or_insert_with(|| Round {
            began: now,
            rest: grants.keys().filter(|key| live(key).is_some()).cloned().collect(),
        });
        round.rest.retain(|key| live(key).is_some());
        let listed = round
            .rest
            .iter()
            .take(CHUNK)
            .filter_map(|key| live(key).map(|grant| (key.clone(), grant.token)))
            .collect();
        Call { listed, limit: now.after(self.third()).min(self.first_deadline()) }
    }

    /// A keep-alive was confirmed. Its deadline counts for the grants that it listed and did not
    /// call lost, if theirs has not passed meanwhile (INV-03).
    pub(super) fn kept(&mut self, call: &Call, kept: &Kept, now: Moment, random: u64) -> Vec<Loss> {
        let mut losses = self.expire(now);
        if self.lost.is_some() {
            return losses;
        }
        self.failures = 0;
        self.ttl = kept.session.ttl;
        let until = kept.session.client_deadline;
        self.deadline = self.deadline.max(until);
        for (key, token) in &call.listed {
            if let Some(grant) = self.grants.get_mut(key)
                && grant.token == *token
                && grant.lost.is_none()
            {
                grant.deadline = grant.deadline.max(until);
            }
        }
        losses.extend(self.lose(|key, grant| {
            kept.lost
                .iter()
                .any(|(gone, token)| gone == key && *token == grant.token)
                .then_some(LossReason::Gone)
        }));
        if let Some(round) = &mut self.round {
            round.rest.retain(|key| !call.listed.iter().any(|(listed, _)| listed == key));
            if round.rest.is_empty() {
                let began = round.began;
                self.round = None;
                self.rounds += 1;
                self.look_wanted = self.rounds.is_multiple_of(LOOK_EVERY);
                self.schedule(began, now, random);
            }
        }
        losses
    }

    /// A keep-alive failed, or was not answered in time: it is made again after a pause.
    pub(super) fn failed(&mut self, now: Moment, random: u64) {
        let cap = Duration::from_secs(1).min(self.ttl.as_duration() / 10);
        let pause = Backoff::new(Duration::from_millis(20), cap).delay(self.failures, random);
        self.failures = self.failures.saturating_add(1);
        self.next_call = now.after(pause);
    }

    /// The next round: a third of the lifetime after the last began, give or take a tenth; earlier
    /// if a deadline is nearer than that; never at once.
    fn schedule(&mut self, began: Moment, now: Moment, random: u64) {
        let third = self.third();
        let spread = u64::try_from((third / 5).as_nanos()).unwrap_or(u64::MAX);
        let drawn = (u128::from(spread) * u128::from(random)) >> 64;
        let jittered = third - third / 10 + Duration::from_nanos(u64::try_from(drawn).unwrap_or(0));
        let soon = now.after(self.ttl.as_duration() / 50);
        let in_time = self.first_deadline().before(third).max(soon);
        self.next_call = began.after(jittered).min(in_time);
    }

    fn third(&self) -> Duration {
        self.ttl.as_duration() / 3
    }

    /// The first moment at which something is lost unless a reply comes.
    fn first_deadline(&self) -> Moment {
        self.grants
            .values()
            .filter(|grant| grant.lost.is_none())
            .map(|grant| grant.deadline)
            .fold(self.deadline, Moment::min)
    }
}

#[cfg(test)]
mod tests {
    use dlock_domain::{LockName, Namespace, OwnerId, Session, SessionId};

    use super::*;

    const NOW: Moment = Moment::from_nanos(1_000_000_000_000);

    fn ms(millis: u64) -> Moment {
        NOW.after(Duration::from_millis(millis))
    }

    fn ttl() -> Ttl {
        Ttl::from_millis(3_000).unwrap()
    }

    fn grant(number: u64) -> (LockKey, FencingToken) {
        let name = LockName::new(&format!("lock-{number}")).unwrap();
        (LockKey::new(Namespace::default(), name), FencingToken::from_user(number).unwrap())
    }

    fn plan(random: u64) -> Plan {
        Plan::new(ttl(), ms(2_900), vec![grant(1)], NOW, random)
    }

    fn called(plan: &mut Plan, now: Moment) -> Call {
        match plan.step(now) {
            Step::Call(call) => call,
            other => panic!("{other:?} instead of a call"),
        }
    }

    fn kept(until: Moment, lost: Vec<(LockKey, FencingToken)>) -> Kept {
        let session = Session {
            id: SessionId::from_bits(1),
            owner: OwnerId::new("me").unwrap(),
            ttl: ttl(),
            client_deadline: until,
        };
        Kept { session, lost }
    }

    #[test]
    fn the_first_call_comes_after_a_third_give_or_take_a_tenth() {
        for (random, due) in [(0, 900), (u64::MAX / 2, 999), (u64::MAX, 1_099)] {
            let Step::Sleep(until) = plan(random).step(NOW) else { panic!("nothing is due yet") };
            let late = until.since(ms(due));
            assert!(late < Duration::from_millis(2), "{late:?} after {due} ms");
            assert!(until >= ms(due), "{until:?} before {due} ms");
        }
    }

    #[test]
    fn a_call_is_given_up_in_time_for_another_and_never_after_the_first_deadline() {
        assert_eq!(called(&mut plan(0), ms(1_000)).limit, ms(2_000));
        assert_eq!(called(&mut plan(0), ms(2_500)).limit, ms(2_900));
    }

    #[test]
    fn failures_pause_between_the_floor_and_a_tenth_of_the_lifetime() {
        let mut plan = plan(0);
        called(&mut plan, ms(1_000));
        plan.failed(ms(1_000), 0);
        assert_eq!(plan.step(ms(1_000)), Step::Sleep(ms(1_020)));
        for _ in 0..40 {
            plan.failed(ms(1_000), u64::MAX);
        }
        let Step::Sleep(until) = plan.step(ms(1_000)) else { panic!("it calls at once") };
        assert!(until <= ms(1_300), "{until:?}");
    }

    #[test]
    fn c14_a_reply_after_the_deadline_revives_nothing() {
        let mut plan = plan(0);
        let call = called(&mut plan, ms(2_000));
        let losses = plan.kept(&call, &kept(ms(4_900), vec![]), ms(2_900), 0);
        let (key, token) = grant(1);
        assert_eq!(losses, [Loss { key: key.clone(), token, reason: LossReason::DeadlinePassed }]);
        assert_eq!(plan.deadline(&key), None);
        assert_eq!(plan.step(ms(2_900)), Step::End);
    }

    #[test]
    fn a_grant_of_a_newer_token_is_not_touched_by_a_reply_about_the_older() {
        let mut plan = plan(0);
        let call = called(&mut plan, ms(1_000));
        let (key, old) = grant(1);
        let (_, new) = grant(2);
        plan.add(key.clone(), new, ms(3_500), ms(1_100));
        let losses = plan.kept(&call, &kept(ms(3_900), vec![(key.clone(), old)]), ms(1_200), 0);
        assert_eq!(losses, []);
        assert_eq!(plan.deadline(&key), Some(ms(3_500)));
    }

    #[test]
    fn only_the_grant_whose_own_deadline_passes_is_lost() {
        let mut plan = plan(0);
        let (short, token) = grant(2);
        plan.add(short.clone(), token, ms(500), NOW);
        let losses = plan.expire(ms(500));
        assert_eq!(losses.len(), 1);
        assert_eq!(losses[0].key, short);
        assert_eq!(plan.deadline(&grant(1).0), Some(ms(2_900)));
        assert_eq!(plan.expire(ms(600)), [], "a loss is told once");
    }

    #[test]
    fn a_short_answer_does_not_make_it_spin() {
        let mut plan = plan(0);
        let call = called(&mut plan, ms(1_000));
        plan.kept(&call, &kept(ms(1_001), vec![]), ms(1_000), 0);
        assert_eq!(plan.step(ms(1_000)), Step::Sleep(ms(1_900)), "the old deadline still holds");
        let call = called(&mut plan, ms(2_899));
        plan.kept(&call, &kept(ms(2_900), vec![]), ms(2_899), 0);
        assert_eq!(plan.step(ms(2_899)), Step::Sleep(ms(2_900)));
    }
}
