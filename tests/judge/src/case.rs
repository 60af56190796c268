//! A case: a history made ready for rules, once, so that each rule stays short.

use std::collections::HashMap;

use crate::grant::{self, Grant};
use crate::history::History;
use crate::ids::{Key, Nanos, OpId, Token};
use crate::operation::{Call, Operation};
use crate::progress::Progress;

/// Numbers for keys, so that grouping by key compares numbers.
#[derive(Debug)]
pub(crate) struct KeyTable<'h> {
    numbers: HashMap<&'h Key, usize>,
    keys: Vec<&'h Key>,
}

impl<'h> KeyTable<'h> {
    fn of(history: &'h History) -> Self {
        let mut table = Self { numbers: HashMap::new(), keys: Vec::new() };
        for operation in history.operations() {
            operation.call.key().into_iter().for_each(|key| table.add(key));
            if let Call::KeepAlive { held, .. } = &operation.call {
                held.iter().for_each(|(key, _)| table.add(key));
            }
        }
        table
    }

    fn add(&mut self, key: &'h Key) {
        let keys = &mut self.keys;
        self.numbers.entry(key).or_insert_with(|| {
            keys.push(key);
            keys.len() - 1
        });
    }

    /// The number of a key of this history.
    pub(crate) fn number(&self, key: &Key) -> usize {
        self.numbers[key]
    }

    pub(crate) fn key(&self, number: usize) -> &'h Key {
        self.keys[number]
    }

    pub(crate) fn numbers(&self) -> std::ops::Range<usize> {
        0..self.keys.len()
    }
}

/// What rules look at: the history, its grants with their safe windows, and what
/// was certain when.
#[derive(Debug)]
pub struct Case<'h> {
    history: &'h History,
    keys: KeyTable<'h>,
    grants: Vec<Grant>,
    progress: Progress<'h>,
}

impl<'h> Case<'h> {
    /// Works out grants and progress; n log n in the number of operations.
    pub fn new(history: &'h History) -> Self {
        let keys = KeyTable::of(history);
        let grants = grant::derive(history, &keys);
        let progress = Progress::of(history, &keys);
        Self { history, keys, grants, progress }
    }

    /// The history itself.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// Every grant that an acquire was answered with.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The key with this number (see [`Grant::key`]).
    pub fn key(&self, number: usize) -> &'h Key {
        self.keys.key(number)
    }

    /// The operation with this id.
    pub fn operation(&self, id: OpId) -> &'h Operation {
        self.history.operation(id)
    }

    /// The greatest token of `key` that an acquire had been answered with strictly
    /// before `moment`, and that acquire.
    pub fn granted_before(&self, key: &Key, moment: Nanos) -> Option<(Token, OpId)> {
        self.progress.granted_before(self.keys.number(key), moment)
    }

    /// The greatest token of `key` known strictly before `moment` to be over for
    /// good, together with all below it, and the operation that says so: a floor
    /// of the key or of its namespace, or a release that removed its grant.
    pub fn over_before(&self, key: &Key, moment: Nanos) -> Option<(Token, OpId)> {
        self.progress.over_before(self.keys.number(key), key.namespace(), moment)
    }
}
