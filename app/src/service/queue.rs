//! The waiters of one process, in order, per key: a pure state machine.
//!
//! Only the head of a line talks to the store; whoever leaves hands the head on. Nothing in here
//! waits, wakes or knows of tasks: each change answers who has become the head, and the caller
//! rings that one's bell. `W` is what is needed to ring it.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// A place in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Why nobody more may join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The line of this key.
    Line,
    /// All lines together.
    Everything,
}

/// All lines.
#[derive(Debug)]
pub(crate) struct Queue<K, W> {
    lines: HashMap<K, VecDeque<(Ticket, W)>>,
    next: u64,
    total: usize,
    max_total: usize,
    max_line: usize,
}

impl<K: Eq + Hash + Clone, W: Clone> Queue<K, W> {
    pub(crate) fn new(max_total: usize, max_line: usize) -> Self {
        Self { lines: HashMap::new(), next: 0, total: 0, max_total, max_line }
    }

    /// Joins the end of a line.
    pub(crate) fn join(&mut self, key: &K, bell: W) -> Result<Ticket, Full> {
        if self.total >= self.max_total {
            return Err(Full::Everything);
        }
        let line = self.lines.entry(key.clone()).or_default();
        if line.len() >= self.max_line {
            return Err(Full::Line);
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.total += 1;
        line.push_back((ticket, bell));
        Ok(ticket)
    }

    /// Leaves a line, from whichever place; the bell of the new head, if the head has changed.
    pub(crate) fn leave(&mut self, key: &K, ticket: Ticket) -> Option<W> {
        let line = self.lines.get_mut(key)?;
        let place = line.iter().position(|(waiting, _)| *waiting == ticket)?;
        line.remove(place);
        self.total -= 1;
        if line.is_empty() {
            self.lines.remove(key);
            return None;
        }
        if place == 0 { line.front().map(|(_, bell)| bell.clone()) } else { None }
    }

    /// Whether this ticket is its line's head.
    pub(crate) fn is_head(&self, key: &K, ticket: Ticket) -> bool {
        self.head(key).is_some_and(|(head, _)| *head == ticket)
    }

    /// The bell of the head: the one to ring when the lock was released here.
    pub(crate) fn head_bell(&self, key: &K) -> Option<W> {
        self.head(key).map(|(_, bell)| bell.clone())
    }

    /// The bells of all heads.
    pub(crate) fn all_heads(&self) -> Vec<W> {
        self.lines.values().filter_map(|line| line.front()).map(|(_, bell)| bell.clone()).collect()
    }

    /// How many wait for this key.
    pub(crate) fn len(&self, key: &K) -> usize {
        self.lines.get(key).map_or(0, VecDeque::len)
    }

    /// How many wait in all.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    fn head(&self, key: &K) -> Option<&(Ticket, W)> {
        self.lines.get(key).and_then(VecDeque::front)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> Queue<&'static str, u32> {
        Queue::new(4, 3)
    }

    #[test]
    fn heads_follow_in_order_of_joining() {
        let mut queue = queue();
        let tickets: Vec<_> = (0..3).map(|bell| queue.join(&"k", bell).unwrap()).collect();
        assert!(queue.is_head(&"k", tickets[0]));
        assert_eq!(queue.head_bell(&"k"), Some(0));
        assert_eq!(queue.leave(&"k", tickets[1]), None, "the head stays the head");
        assert_eq!(queue.leave(&"k", tickets[0]), Some(2));
        assert!(queue.is_head(&"k", tickets[2]));
        assert_eq!(queue.leave(&"k", tickets[2]), None);
        assert_eq!((queue.len(&"k"), queue.total()), (0, 0));
        assert!(queue.lines.is_empty(), "an empty line is not kept");
    }

    #[test]
    fn c09_limits_refuse_the_newcomer_and_nobody_else() {
        let mut queue = queue();
        let first = queue.join(&"k", 0).unwrap();
        for bell in 1..3 {
            queue.join(&"k", bell).unwrap();
        }
        assert_eq!(queue.join(&"k", 9), Err(Full::Line));
        queue.join(&"other", 3).unwrap();
        assert_eq!(queue.join(&"third", 9), Err(Full::Everything));
        assert_eq!((queue.len(&"k"), queue.total()), (3, 4));
        assert!(queue.is_head(&"k", first));
        queue.leave(&"k", first);
        assert!(queue.join(&"third", 9).is_ok());
    }

    #[test]
    fn leaving_twice_or_elsewhere_changes_nothing() {
        let mut queue = queue();
        let one = queue.join(&"k", 1).unwrap();
        queue.join(&"k", 2).unwrap();
        assert_eq!(queue.leave(&"other", one), None);
        assert_eq!(queue.leave(&"k", one), Some(2));
        assert_eq!(queue.leave(&"k", one), None);
        assert_eq!(queue.total(), 1);
    }

    /// Against a model that is nothing but a list, over every short sequence of joins and leaves.
    #[test]
    fn every_short_sequence_agrees_with_a_plain_list() {
        for mut code in 0..4_u32.pow(7) {
            let mut queue: Queue<u8, u64> = Queue::new(100, 100);
            let mut model: Vec<Ticket> = Vec::new();
            let mut bell = 0;
            for _ in 0..7 {
                let act = code % 4;
                code /= 4;
                if act == 0 {
                    model.push(queue.join(&0, bell).unwrap());
                    bell += 1;
                } else if let Some(place) = (act as usize - 1).checked_rem(model.len()) {
                    let ticket = model.remove(place);
                    let rung = queue.leave(&0, ticket);
                    let expected = if place == 0 { model.first() } else { None };
                    assert_eq!(rung.map(Ticket), expected.copied());
                }
                assert_eq!(queue.len(&0), model.len());
                assert_eq!(queue.head_bell(&0).map(Ticket), model.first().copied());
            }
        }
    }
}
