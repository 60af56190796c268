//! What may end grants without their holder's doing: revokes of a key, floor
//! raises of a namespace.
//!
//! A reply with a floor says exactly which grants it ended: those at or below it.
//! An unknown outcome may have ended any grant, at any time after its call
//! (trap 12), unless a later answer saw that grant live. Both questions are
//! answered by binary search, so many revokes stay cheap.

use std::collections::HashMap;

use crate::ids::{Nanos, OpId, Token};

/// Where a window is cut: the beginning of the operation that cuts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cut {
    pub(crate) at: Nanos,
    pub(crate) by: OpId,
}

/// Revokes of one key, or raises of one namespace.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    /// By floor; after `seal` each cut is the earliest of those with that floor or a higher one.
    certain: Vec<(Token, Cut)>,
    /// By the reply (`NEVER` if unknown); after `seal` each cut is the earliest of
    /// those that were answered then or later.
    possible: Vec<(Nanos, Cut)>,
    /// Of unknown outcome, but able to end this one token only.
    aimed: HashMap<Token, Cut>,
}

impl Endings {
    /// Grants at or below `floor` are over.
    pub(crate) fn certain(&mut self, floor: Token, cut: Cut) {
        self.certain.push((floor, cut));
    }

    /// Any grant not seen live after `replied` may be over.
    pub(crate) fn possible(&mut self, replied: Nanos, cut: Cut) {
        self.possible.push((replied, cut));
    }

    /// The grant with this token, and no other, may be over.
    pub(crate) fn aimed(&mut self, token: Token, cut: Cut) {
        let known = self.aimed.entry(token).or_insert(cut);
        *known = (*known).min(cut);
    }

    /// To be called once, after the last addition and before the first question.
    pub(crate) fn seal(&mut self) {
        keep_earliest_from_the_end(&mut self.certain);
        keep_earliest_from_the_end(&mut self.possible);
    }

    /// Where a grant with `token` that was last seen live by an operation invoked
    /// at `proof` is cut.
    pub(crate) fn cut(&self, token: Token, proof: Nanos) -> Option<Cut> {
        let floors = self.certain.partition_point(|(floor, _)| *floor < token);
        let certain = self.certain.get(floors).map(|(_, cut)| *cut);
        // An answer from before the proof left cannot have ended this grant.
        let replies = self.possible.partition_point(|(replied, _)| *replied <= proof);
        let possible = self.possible.get(replies).map(|(_, cut)| *cut);
        let doubtful = possible.into_iter().chain(self.aimed.get(&token).copied());
        // Whatever its outcome, it had not yet happened when the proof left.
        let doubtful = doubtful.map(|cut| Cut { at: cut.at.max(proof), ..cut });
        certain.into_iter().chain(doubtful).min()
    }
}

fn keep_earliest_from_the_end<T: Ord>(list: &mut [(T, Cut)]) {
    list.sort_unstable();
    let mut earliest: Option<Cut> = None;
    for (_, cut) in list.iter_mut().rev() {
        let best = earliest.map_or(*cut, |seen| seen.min(*cut));
        *cut = best;
        earliest = Some(best);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(at: u64) -> Cut {
        Cut { at: Nanos(at), by: OpId(0) }
    }

    #[test]
    fn a_floor_cuts_what_is_at_or_below_it_at_the_earliest_such_call() {
        let mut endings = Endings::default();
        endings.certain(Token(10), cut(50));
        endings.certain(Token(20), cut(40));
        endings.certain(Token(30), cut(60));
        endings.seal();
        assert_eq!(endings.cut(Token(10), Nanos(0)), Some(cut(40)));
        assert_eq!(endings.cut(Token(21), Nanos(0)), Some(cut(60)));
        assert_eq!(endings.cut(Token(30), Nanos(0)), Some(cut(60)));
        assert_eq!(endings.cut(Token(31), Nanos(0)), None);
    }

    #[test]
    fn a_doubtful_ending_cuts_only_after_the_last_proof_of_life() {
        let mut endings = Endings::default();
        endings.possible(Nanos(45), cut(40));
        endings.possible(Nanos::NEVER, cut(50));
        endings.seal();
        assert_eq!(endings.cut(Token(1), Nanos(10)), Some(cut(40)));
        assert_eq!(endings.cut(Token(1), Nanos(45)), Some(cut(50)));
        assert_eq!(endings.cut(Token(1), Nanos(70)), Some(cut(70)));
    }

    #[test]
    fn an_aimed_ending_touches_one_token() {
        let mut endings = Endings::default();
        endings.aimed(Token(3), cut(40));
        endings.aimed(Token(3), cut(30));
        endings.seal();
        assert_eq!(endings.cut(Token(3), Nanos(0)), Some(cut(30)));
        assert_eq!(endings.cut(Token(4), Nanos(0)), None);
    }
}
