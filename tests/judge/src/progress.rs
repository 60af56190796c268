//! What was certain about a key before a moment: the greatest token granted, and
//! the greatest token that is over for good.
//!
//! *Certain before* means that the reply had arrived strictly before the moment
//! asked about. Each question is a binary search over replies in order of time,
//! with running maxima.

use std::collections::HashMap;

use crate::case::KeyTable;
use crate::history::History;
use crate::ids::{Nanos, OpId, Token};
use crate::operation::{Answer, Call};

/// A token and the operation whose reply made it certain.
pub(crate) type Certain = (Token, OpId);

/// Replies in order of time, each with the greatest token up to it.
#[derive(Debug, Default)]
struct Line {
    marks: Vec<(Nanos, Certain)>,
}

impl Line {
    fn mark(&mut self, at: Nanos, token: Token, by: OpId) {
        self.marks.push((at, (token, by)));
    }

    fn seal(&mut self) {
        self.marks.sort_unstable();
        let mut greatest: Option<Certain> = None;
        for (_, mark) in &mut self.marks {
            let best = greatest.filter(|seen| seen.0 >= mark.0).unwrap_or(*mark);
            *mark = best;
            greatest = Some(best);
        }
    }

    fn before(&self, moment: Nanos) -> Option<Certain> {
        let known = self.marks.partition_point(|(at, _)| *at < moment);
        self.marks[..known].last().map(|(_, mark)| *mark)
    }
}

/// The progress of tokens over a whole history.
#[derive(Debug)]
pub(crate) struct Progress<'h> {
    granted: Vec<Line>,
    over: Vec<Line>,
    raised: HashMap<&'h str, Line>,
}

impl<'h> Progress<'h> {
    pub(crate) fn of(history: &'h History, keys: &KeyTable<'_>) -> Self {
        let lines = || keys.numbers().map(|_| Line::default()).collect::<Vec<_>>();
        let (mut granted, mut over, mut raised) = (lines(), lines(), HashMap::new());
        for operation in history.operations() {
            let Some((at, answer)) = operation.reply() else { continue };
            match (&operation.call, answer) {
                (Call::Acquire { key, .. }, Answer::Granted { token, .. }) => {
                    granted[keys.number(key)].mark(at, *token, operation.id);
                }
                (Call::Release { key, token }, Answer::Released(true))
                | (
                    Call::Revoke { key, .. },
                    Answer::Revoked { floor: token, .. } | Answer::Free { floor: token },
                ) => over[keys.number(key)].mark(at, *token, operation.id),
                (Call::RaiseFloor { namespace, .. }, Answer::FloorRaised { floor, .. }) => {
                    let line: &mut Line = raised.entry(namespace.as_str()).or_default();
                    line.mark(at, *floor, operation.id);
                }
                _ => {}
            }
        }
        granted.iter_mut().chain(&mut over).chain(raised.values_mut()).for_each(Line::seal);
        Self { granted, over, raised }
    }

    /// The greatest token that an acquire had been answered with before `moment`.
    pub(crate) fn granted_before(&self, key: usize, moment: Nanos) -> Option<Certain> {
        self.granted[key].before(moment)
    }

    /// The greatest token known before `moment` to be over, for it and all below:
    /// a floor of the key or its namespace, or a token that was released.
    pub(crate) fn over_before(
        &self,
        key: usize,
        namespace: &str,
        moment: Nanos,
    ) -> Option<Certain> {
        let raised = self.raised.get(namespace).and_then(|line| line.before(moment));
        self.over[key].before(moment).into_iter().chain(raised).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_answered_strictly_before_counts_and_the_greatest_of_it() {
        let mut line = Line::default();
        line.mark(Nanos(30), Token(4), OpId(3));
        line.mark(Nanos(10), Token(5), OpId(1));
        line.mark(Nanos(40), Token(9), OpId(4));
        line.seal();
        assert_eq!(line.before(Nanos(10)), None);
        assert_eq!(line.before(Nanos(40)), Some((Token(5), OpId(1))));
        assert_eq!(line.before(Nanos(41)), Some((Token(9), OpId(4))));
    }
}
