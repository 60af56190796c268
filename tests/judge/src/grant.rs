//! Grants and their safe windows.
//!
//! A *grant* is what an acquire was answered: key, token, attempt. Its *safe
//! window* is when its holder may act (INV-03 and the judge's section of the
//! traps): from the acquire's reply to the latest deadline that a reply gave it,
//! cut at the start of its release, of a forget of its attempt, of its session's
//! close, and of a revoke or floor raise that ends it.
//!
//! Each reply (of the acquire, of a repeat that recognised the grant, of a renew,
//! of a keep-alive that listed it and did not find it lost) is evidence for the
//! span from its arrival to the deadline it carries. Spans that touch make one
//! window; a renewal whose reply came after the previous deadline leaves a hole
//! in which the holder was right to stop. What is unknown lengthens nothing.
//!
//! Two things cut nothing: a *lost* answer (a grant gone early is what J3 is to
//! find) and a definite failure (a stranger's refused release ends no grant).

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::case::KeyTable;
use crate::endings::{Cut, Endings};
use crate::history::History;
use crate::ids::{Attempt, Nanos, OpId, Session, Token};
use crate::operation::{Answer, Call, Operation};

/// A grant that some acquire was answered with.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The key's number in its [`Case`](crate::Case).
    pub key: usize,
    /// The fencing token.
    pub token: Token,
    /// The attempt it was made for.
    pub attempt: Attempt,
    /// The session that holds it.
    pub session: Session,
    /// The acquire whose reply came first.
    pub acquire: OpId,
    /// When the last operation that saw it live was invoked: until then at least
    /// it was there.
    pub proof: Nanos,
    /// Its safe windows, in order, apart from each other.
    pub windows: Vec<Window>,
    /// The operation that cut a window short, or left none of it.
    pub cut_by: Option<OpId>,
}

/// A span in which a holder may act: from `from` until just before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The moment of the reply that opened it.
    pub from: Nanos,
    /// The deadline, or the start of what cut it.
    pub until: Nanos,
    /// The operation whose reply opened it.
    pub opened_by: OpId,
    /// The operation that set the deadline, or that cut the window.
    pub ended_by: OpId,
}

/// Places of grants by key and token: more than one only where J1 is broken.
type ByToken = HashMap<(usize, Token), Vec<usize>>;

/// A grant in the making.
struct Draft {
    grant: Grant,
    first_reply: Nanos,
    spans: Vec<Window>,
    holder_end: Option<Cut>,
}

impl Draft {
    fn see_live(&mut self, operation: &Operation, reply: Nanos, until: Nanos) {
        self.grant.proof = self.grant.proof.max(operation.invoked);
        self.spans.push(Window {
            from: reply,
            until,
            opened_by: operation.id,
            ended_by: operation.id,
        });
    }

    fn finish(self, outside: Option<Cut>) -> Grant {
        let Self { mut grant, first_reply, mut spans, holder_end } = self;
        let cut = holder_end.into_iter().chain(outside).min();
        for span in &mut spans {
            span.from = span.from.max(first_reply);
        }
        spans.retain(|span| span.from < span.until);
        spans.sort_unstable_by_key(|span| (span.from, span.until));
        let windows = &mut grant.windows;
        for span in spans {
            match windows.last_mut() {
                Some(last) if span.from <= last.until => {
                    if span.until > last.until {
                        last.until = span.until;
                        last.ended_by = span.ended_by;
                    }
                }
                _ => windows.push(span),
            }
        }
        let last = windows.last().map(|last| last.until);
        if let Some(cut) = cut.filter(|cut| last.is_some_and(|until| until > cut.at)) {
            windows.retain(|window| window.from < cut.at);
            if let Some(last) = windows.last_mut().filter(|last| last.until > cut.at) {
                last.until = cut.at;
                last.ended_by = cut.by;
            }
            grant.cut_by = Some(cut.by);
        }
        grant
    }
}

/// Everything that ends grants, by what it names.
#[derive(Default)]
struct Ends<'h> {
    by_attempt: HashMap<(usize, Attempt), Cut>,
    by_session: HashMap<&'h Session, Cut>,
    of_key: HashMap<usize, Endings>,
    of_namespace: HashMap<&'h str, Endings>,
}

/// All grants of a history, in no particular order.
pub(crate) fn derive(history: &History, keys: &KeyTable<'_>) -> Vec<Grant> {
    let (mut drafts, by_token) = granted(history, keys);
    let mut ends = Ends::default();
    for operation in history.operations() {
        if let (Some((reply, _)), Some((until, seen))) = (operation.reply(), operation.confirmed())
        {
            for (key, token) in seen {
                for &at in by_token.get(&(keys.number(key), token)).into_iter().flatten() {
                    drafts[at].see_live(operation, reply, until);
                }
            }
        }
        if operation.certainly_did_nothing() {
            continue;
        }
        let cut = Cut { at: operation.invoked, by: operation.id };
        if let Call::Release { key, token } = &operation.call {
            for &at in by_token.get(&(keys.number(key), *token)).into_iter().flatten() {
                let end = &mut drafts[at].holder_end;
                *end = Some(end.map_or(cut, |known| known.min(cut)));
            }
        } else {
            ends.note(operation, keys, cut);
        }
    }
    ends.of_key.values_mut().chain(ends.of_namespace.values_mut()).for_each(Endings::seal);
    drafts
        .into_iter()
        .map(|draft| {
            let outside = ends.cut(&draft.grant, keys);
            draft.finish(outside)
        })
        .collect()
}

/// The grants that acquires were answered with, and where to find each.
fn granted(history: &History, keys: &KeyTable<'_>) -> (Vec<Draft>, ByToken) {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut by_token = ByToken::new();
    for operation in history.operations() {
        let Call::Acquire { key, attempt, .. } = &operation.call else { continue };
        let Some((reply, Answer::Granted { token, session, valid_until })) = operation.reply()
        else {
            continue;
        };
        let key = keys.number(key);
        let twins = by_token.entry((key, *token)).or_default();
        let known = twins.iter().copied().find(|at| drafts[*at].grant.attempt == *attempt);
        let at = known.unwrap_or_else(|| {
            twins.push(drafts.len());
            drafts.push(Draft {
                grant: Grant {
                    key,
                    token: *token,
                    attempt: *attempt,
                    session: session.clone(),
                    acquire: operation.id,
                    proof: operation.invoked,
                    windows: Vec::new(),
                    cut_by: None,
                },
                first_reply: reply,
                spans: Vec::new(),
                holder_end: None,
            });
            drafts.len() - 1
        });
        let draft = &mut drafts[at];
        if reply < draft.first_reply {
            draft.first_reply = reply;
            draft.grant.acquire = operation.id;
        }
        draft.see_live(operation, reply, *valid_until);
    }
    (drafts, by_token)
}

impl<'h> Ends<'h> {
    /// Notes what `operation`, which may have had an effect, ends.
    fn note(&mut self, operation: &'h Operation, keys: &KeyTable<'_>, cut: Cut) {
        let reply = operation.reply();
        match &operation.call {
            Call::Forget { key, attempt } => {
                keep_earliest(self.by_attempt.entry((keys.number(key), *attempt)), cut);
            }
            Call::CloseSession { session } => keep_earliest(self.by_session.entry(session), cut),
            Call::Revoke { key, expected } => {
                let endings = self.of_key.entry(keys.number(key)).or_default();
                match (reply, expected) {
                    (Some((_, Answer::Revoked { floor, .. } | Answer::Free { floor })), _) => {
                        endings.certain(*floor, cut);
                    }
                    (_, Some(token)) => endings.aimed(*token, cut),
                    (_, None) => endings.possible(Nanos::NEVER, cut),
                }
            }
            Call::RaiseFloor { namespace, .. } => {
                let endings = self.of_namespace.entry(namespace).or_default();
                let replied = match reply {
                    Some((at, Answer::FloorRaised { floor, .. })) => {
                        endings.certain(*floor, cut);
                        at
                    }
                    _ => Nanos::NEVER,
                };
                // It ends every live grant, also one above the floor.
                endings.possible(replied, cut);
            }
            Call::Acquire { .. }
            | Call::Renew { .. }
            | Call::KeepAlive { .. }
            | Call::Release { .. }
            | Call::Inspect { .. } => {}
        }
    }

    fn cut(&self, grant: &Grant, keys: &KeyTable<'_>) -> Option<Cut> {
        let namespace = keys.key(grant.key).namespace();
        let endings = self.of_key.get(&grant.key).into_iter();
        let outside = endings.chain(self.of_namespace.get(namespace));
        let holder = self.by_attempt.get(&(grant.key, grant.attempt)).into_iter();
        holder
            .chain(self.by_session.get(&grant.session))
            .copied()
            .chain(outside.filter_map(|endings| endings.cut(grant.token, grant.proof)))
            .min()
    }
}

fn keep_earliest<K>(entry: Entry<'_, K, Cut>, cut: Cut) {
    let known = entry.or_insert(cut);
    *known = (*known).min(cut);
}

#[cfg(test)]
mod tests {
    use crate::Case;
    use crate::ids::{Session, Token};
    use crate::operation::{Answer, Call, Operation};
    use crate::script::{
        acquired, forget, history, keep_alive, key, op, raise, release, renewed, revoke, unanswered,
    };

    /// The windows of the grant with token 5, as plain numbers.
    fn windows(operations: Vec<Operation>) -> Vec<(u64, u64)> {
        let history = history(operations);
        let case = Case::new(&history);
        let grant = case.grants().iter().find(|grant| grant.token == Token(5)).unwrap();
        grant.windows.iter().map(|window| (window.from.0, window.until.0)).collect()
    }

    #[test]
    fn a_window_runs_from_the_reply_to_the_deadline() {
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90)]), [(20, 90)]);
    }

    #[test]
    fn a_reply_after_the_deadline_opens_no_window() {
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..95, 90)]), []);
    }

    #[test]
    fn a_renew_answered_in_time_lengthens_the_window() {
        let renew = renewed("k", 5, 70..80, 150);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), renew]), [(20, 150)]);
    }

    #[test]
    fn a_renew_answered_late_leaves_a_hole() {
        let renew = renewed("k", 5, 85..100, 165);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), renew]), [(20, 90), (100, 165)]);
    }

    #[test]
    fn a_renew_with_an_earlier_deadline_shortens_nothing() {
        let renew = renewed("k", 5, 30..40, 60);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), renew]), [(20, 90)]);
    }

    #[test]
    fn an_unknown_renew_lengthens_nothing() {
        let renew = Operation { answer: Answer::Unknown, ..renewed("k", 5, 70..80, 150) };
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), renew]), [(20, 90)]);
    }

    #[test]
    fn a_keep_alive_lengthens_what_it_lists_and_has_not_lost() {
        let held = [("k", 5), ("other", 6)];
        let kept = keep_alive("s1", &held, 70..80, 150, &[("other", 6)]);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), kept]), [(20, 150)]);
        let kept = keep_alive("s1", &held, 70..80, 150, &[("k", 5)]);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), kept]), [(20, 90)]);
        let kept = keep_alive("s1", &[("other", 6)], 70..80, 150, &[]);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), kept]), [(20, 90)]);
    }

    #[test]
    fn a_repeat_that_recognises_its_grant_is_evidence_too() {
        let repeat = acquired("k", 1, 5, 30..40, 120);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), repeat]), [(20, 120)]);
    }

    #[test]
    fn no_window_begins_before_the_acquires_first_reply() {
        let renew = renewed("k", 5, 20..30, 110);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..50, 90), renew]), [(50, 110)]);
        let repeat = acquired("k", 1, 5, 20..30, 100);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..50, 90), repeat]), [(30, 100)]);
    }

    #[test]
    fn a_release_cuts_at_its_start_whatever_became_of_it() {
        for answer in [Answer::Released(true), Answer::Released(false), Answer::Lost] {
            let end = op(50..60, Call::Release { key: key("k"), token: Token(5) }, answer);
            assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), end]), [(20, 50)]);
        }
        let unknown = unanswered(50, Call::Release { key: key("k"), token: Token(5) });
        let renew = renewed("k", 5, 70..80, 150);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), unknown, renew]), [(20, 50)]);
    }

    #[test]
    fn a_definitely_failed_release_cuts_nothing() {
        let failed = op(50..60, release("k", 5, 50..60, true).call, Answer::Failed);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), failed]), [(20, 90)]);
    }

    #[test]
    fn a_release_of_another_token_cuts_nothing() {
        let other = release("k", 4, 50..60, false);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), other]), [(20, 90)]);
    }

    #[test]
    fn forgetting_the_attempt_and_closing_the_session_cut() {
        let forget = forget("k", 1, 50..60);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), forget]), [(20, 50)]);
        let close = unanswered(55, Call::CloseSession { session: Session::new("s1") });
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), close]), [(20, 55)]);
        let stranger = unanswered(55, Call::CloseSession { session: Session::new("s2") });
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), stranger]), [(20, 90)]);
    }

    #[test]
    fn a_revoke_cuts_what_is_at_or_below_its_floor() {
        let revoked = revoke("k", 50..60, Answer::Revoked { previous: Token(5), floor: Token(8) });
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), revoked]), [(20, 50)]);
        let before = revoke("k", 15..60, Answer::Free { floor: Token(4) });
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), before]), [(20, 90)]);
        let elsewhere = revoke("j", 50..60, Answer::Free { floor: Token(8) });
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), elsewhere]), [(20, 90)]);
    }

    #[test]
    fn an_unknown_revoke_may_have_ended_any_grant_not_seen_live_since() {
        let unknown = || unanswered(5, revoke("k", 5..6, Answer::Failed).call);
        assert_eq!(windows(vec![unknown(), acquired("k", 1, 5, 10..20, 90)]), []);
        let renew = renewed("k", 5, 70..80, 150);
        assert_eq!(windows(vec![unknown(), acquired("k", 1, 5, 10..20, 90), renew]), [(20, 70)]);
    }

    #[test]
    fn a_conditional_revoke_of_unknown_outcome_aims_at_one_token() {
        let aimed = |token| {
            let expected = Some(Token(token));
            unanswered(50, Call::Revoke { key: key("k"), expected })
        };
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), aimed(5)]), [(20, 50)]);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), aimed(4)]), [(20, 90)]);
    }

    #[test]
    fn a_floor_raise_cuts_every_grant_of_its_namespace() {
        let above = raise("default", 50..60, 3);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), above]), [(20, 50)]);
        // A renew that succeeds all the same is J4's to find; the window is over.
        let first = acquired("k", 1, 5, 10..20, 90);
        let renew = renewed("k", 5, 70..80, 150);
        assert_eq!(windows(vec![first, raise("default", 50..60, 8), renew]), [(20, 50)]);
        let elsewhere = raise("other", 50..60, 9);
        assert_eq!(windows(vec![acquired("k", 1, 5, 10..20, 90), elsewhere]), [(20, 90)]);
        let before = raise("default", 1..9, 3);
        assert_eq!(windows(vec![before, acquired("k", 1, 5, 10..20, 90)]), [(20, 90)]);
    }
}
