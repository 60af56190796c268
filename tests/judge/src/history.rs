//! A history: every operation of a run, in a shape that rules may rely on.

use std::error::Error;
use std::fmt;

use crate::ids::{Nanos, OpId, Session};
use crate::operation::{Flaw, Operation};

/// What was seen beside the calls, and excuses what a store declares it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A lease that had been confirmed was seen gone before its time to live was
    /// over (trap 4: etcd after its leader was paused). Only somebody who looked
    /// at the store itself may write this down; a lost lock alone proves nothing.
    EarlyExpiry {
        /// The session whose lease it was.
        session: Session,
        /// When it was seen gone.
        seen_gone: Nanos,
    },
}

/// The operations of a run, each well formed, numbered by their place.
#[derive(Clone, Debug, Default)]
pub struct History {
    operations: Vec<Operation>,
    evidence: Vec<Evidence>,
}

/// An operation that cannot have happened as recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its place in what was handed in.
    pub at: usize,
    /// What is wrong with it.
    pub flaw: Flaw,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} is malformed: {:?}", self.at, self.flaw)
    }
}

impl Error for Malformed {}

impl History {
    /// Makes a history of operations in any order; their ids are given anew.
    ///
    /// # Errors
    /// [`Malformed`] names the first operation with a [`Flaw`].
    pub fn new(mut operations: Vec<Operation>, evidence: Vec<Evidence>) -> Result<Self, Malformed> {
        for (at, operation) in operations.iter_mut().enumerate() {
            operation.id = OpId(at);
            if let Some(flaw) = operation.flaw() {
                return Err(Malformed { at, flaw });
            }
        }
        Ok(Self { operations, evidence })
    }

    /// For the recorder, which has checked each operation when it was finished.
    pub(crate) fn trusted(operations: Vec<Operation>, evidence: Vec<Evidence>) -> Self {
        Self { operations, evidence }
    }

    /// One history of several, recorded by different processes against the same
    /// clock (the boot clock of one machine, say).
    pub fn merge(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut whole = Self::default();
        for part in parts {
            whole.operations.extend(part.operations);
            whole.evidence.extend(part.evidence);
        }
        whole.operations.sort_by_key(|operation| operation.invoked);
        for (at, operation) in whole.operations.iter_mut().enumerate() {
            operation.id = OpId(at);
        }
        whole
    }

    /// All operations; the place of each is its id.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operation with this id, which must come from this history.
    pub(crate) fn operation(&self, id: OpId) -> &Operation {
        &self.operations[id.0]
    }

    /// What was seen beside the calls.
    pub fn evidence(&self) -> &[Evidence] {
        &self.evidence
    }

    /// Takes the history apart, to build another.
    pub fn into_parts(self) -> (Vec<Operation>, Vec<Evidence>) {
        (self.operations, self.evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::acquired;

    #[test]
    fn a_malformed_operation_is_refused_by_its_place() {
        let good = acquired("k", 1, 5, 10..20, 90);
        let bad = Operation { returned: None, ..good.clone() };
        let refused = History::new(vec![good, bad], vec![]).unwrap_err();
        assert_eq!(refused, Malformed { at: 1, flaw: Flaw::AnswerWithoutReturn });
    }

    #[test]
    fn merging_orders_by_invocation_and_numbers_anew() {
        let late = History::new(vec![acquired("k", 2, 6, 30..40, 90)], vec![]).unwrap();
        let early = History::new(vec![acquired("k", 1, 5, 10..20, 25)], vec![]).unwrap();
        let whole = History::merge([late, early]);
        let seen: Vec<_> = whole.operations().iter().map(|o| (o.id, o.invoked)).collect();
        assert_eq!(seen, [(OpId(0), Nanos(10)), (OpId(1), Nanos(30))]);
    }
}
