//! The plain values a history is made of.
//!
//! They are the judge's own, not the domain's: a history may come from a
//! program in another language, and a broken server's answers (token 0, a token
//! past 2^53) must be recordable, since finding them is the point.

use std::fmt;
use std::sync::Arc;

/// A moment in nanoseconds on the one monotonic clock that the whole history
/// shares, handed in by whoever records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Later than every moment: where something unknown has no last moment (trap 12).
    pub const NEVER: Self = Self(u64::MAX);
}

/// A fencing token as it was answered (INV-04 wants them to grow per key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {}", self.0)
    }
}

/// The id of one acquire call, the same when the call is repeated (C2, `AttemptId`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u128);

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {:x}", self.0)
    }
}

/// The client that made a call; one number for one thread of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}", self.0)
    }
}

/// Which lock server a call went through, and in which of its lives, so that
/// servers and restarts can be told apart in a history. No rule depends on it:
/// promises hold across servers and restarts; it is there for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation {
    /// The lock server, numbered by whoever runs it.
    pub server: u32,
    /// How often that server had been started before.
    pub epoch: u32,
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {}.{}", self.server, self.epoch)
    }
}

/// A lock's key: namespace and name, compared byte for byte (C2, `LockKey`).
/// Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    namespace: Arc<str>,
    name: Arc<str>,
}

impl Key {
    /// The key `name` in `namespace`; nothing is checked, a history holds what was asked.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key `name` in the namespace `default`.
    pub fn named(name: &str) -> Self {
        Self::new("default", name)
    }

    /// The namespace, which a floor raise covers as a whole.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The lock's name within its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.namespace, self.name)
    }
}

/// A label that tells sessions apart. Verdicts print it, so a run against a
/// server whose session ids matter gives labels of its own. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(Arc<str>);

impl Session {
    /// A session known under `label` in this history.
    pub fn new(label: &str) -> Self {
        Self(label.into())
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}", self.0)
    }
}

/// The place of an operation in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub usize);

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}
