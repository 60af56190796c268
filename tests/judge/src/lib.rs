//! The judge: it looks at what clients asked and what they were answered, and
//! says whether a lock service kept its promises.
//!
//! It never looks into a store. A run (one process or many, with or without
//! faults) records its calls in a [`Recorder`]; [`judge`] then holds the
//! [`History`] against rules that are each written down in one file. The crate
//! has no dependency, no clock and no chance of its own, so whatever it finds
//! can be found again from the same history.
//!
//! # Map
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`ids`] | keys, tokens, attempts, sessions, processes, moments: plain values |
//! | [`operation`] | one call with its answer, and which answers fit which calls |
//! | [`history`] | all operations of a run, checked for shape, plus evidence |
//! | [`recorder`] | the thread-safe, bounded way to write a history |
//! | [`case`] | a history made ready for rules: grants, windows, what was known when |
//! | [`grant`] | safe windows: when a holder may act, by INV-03 and the traps |
//! | [`rules`] | one file a rule, each with a history it rejects and a look-alike it accepts |
//! | [`verdict`] | what was found, and how it is told to a person |
//!
//! # What the rules say
//!
//! | rule | promise | file |
//! | --- | --- | --- |
//! | J1 | one (key, token) never goes to two attempts | [`rules::j1_one_attempt`] |
//! | J2 | what was granted before has the smaller token | [`rules::j2_tokens_grow`] |
//! | J3 | safe windows of different grants on a key never meet | [`rules::j3_windows`] |
//! | J4 | nothing succeeds with a token that a later grant has overtaken | [`rules::j4_stale_tokens`] |
//!
//! # What unknown means
//!
//! An operation whose answer never came, or was a time-out, is *unknown*: it may
//! have taken effect, may do so at any later time, or never. Hence an unknown
//! acquire never counts as held; an unknown renew or keep-alive never lengthens
//! a window; an unknown release ends the window where it *began*; an unknown
//! revoke or floor raise may have ended any grant from its beginning on, except
//! where a later answer proves that the grant was still there.
//! A *definite failure* ([`Answer::Failed`](operation::Answer::Failed)) had no
//! effect: it neither lengthens nor ends anything.
//!
//! # What is legal, though it may look wrong
//!
//! - Two processes *believe* they hold a lock: only windows that the deadlines
//!   cover count, and a stale holder's belief is what fencing tokens are for.
//! - Gaps between tokens, and one token on two keys (stores group many locks in
//!   one commit).
//! - Late expiry: a lock stays taken long after its holder's deadline.
//! - The same attempt is granted the same token again: a repeat found its own
//!   grant. Or a greater one, once that grant had ended.
//! - A lease that its store ended early, for stores that declare that this can
//!   happen, and only with evidence: counted, not accused (see J3).
//!
//! Moments that are equal count as overlapping: *before* is always strict, so
//! the judge never accuses on the strength of a clock's granularity.
//!
//! # Example
//!
//! ```
//! use dlock_judge::ids::{Attempt, Key, Nanos, ProcessId, Session, Token};
//! use dlock_judge::operation::{Answer, Call};
//! use dlock_judge::rules::{self, EarlyExpiry};
//! use dlock_judge::{Recorder, judge};
//!
//! let recorder = Recorder::new(1_000);
//! let call = Call::Acquire {
//!     key: Key::named("report"),
//!     attempt: Attempt(1),
//!     session: None,
//!     ttl_ns: 30_000_000_000,
//! };
//! let ticket = recorder.begin(Nanos(10), ProcessId(1), call)?;
//! let answer = Answer::Granted {
//!     token: Token(7),
//!     session: Session::new("s1"),
//!     valid_until: Nanos(29_400_000_010),
//! };
//! recorder.finish(ticket, Nanos(900), answer)?;
//!
//! let verdict = judge(&recorder.into_history(), &rules::all(EarlyExpiry::Never));
//! assert!(verdict.is_clean(), "{verdict}");
//! assert_eq!(verdict.seen.grants, 1);
//! # Ok::<(), dlock_judge::recorder::RecordError>(())
//! ```

pub mod case;
mod endings;
pub mod grant;
pub mod history;
pub mod ids;
pub mod operation;
mod progress;
pub mod recorder;
pub mod rules;
#[cfg(test)]
mod script;
pub mod verdict;

pub use case::Case;
pub use history::History;
pub use operation::Operation;
pub use recorder::Recorder;
pub use rules::Rule;
pub use verdict::{Verdict, judge};
