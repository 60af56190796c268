//! Checks, fixes and the one test command, as `cargo xtask <verb>`.
//!
//! # Map
//! - [`verbs`]: reads the command line, holds the help text, picks a verb.
//! - [`verify`], [`fix`], [`ci`], [`mod@test`]: one verb each. `verify` only checks and `fix` only
//!   changes; neither does a bit of the other.
//! - [`scan`]: tries every route of a running server against its description, with a tool from PyPI;
//!   apart from `test` and `ci`, which need nothing but cargo.
//! - [`backends`]: the servers that tests run on.
//! - [`parity`]: the page that says which case of the suites holds on which store.
//! - [`counts`]: what tests say they came to. [`output`]: following what a command prints.
//! - [`rules`]: what `verify` checks, one rule a file, each with a planted violation as its test.
//! - [`house`]: what a rule may look at: the source files and the dependency [`graph`].
//! - [`finding`]: one violation, printed as `rule: path:line: what is wrong -> how to mend it`.
//! - [`grep`] and [`lex`]: finding text and its line; telling code from comments and strings.
//! - [`spdx`]: licence expressions. [`isolation`]: which drivers a feature may bring.
//! - [`cargo`]: running cargo. [`stopwatch`]: seconds for display. [`say`]: printing.
//!
//! # What stays true
//! - A rule is a pure function of the [`house::House`]: it runs nothing and reads nothing else.
//! - Every rule runs, whatever the others found: a run reports all findings at once.
//! - Needles that would be found in this crate itself are put together at run time, so that no
//!   rule has to exempt its own source.

pub mod backends;
pub mod cargo;
pub mod ci;
pub mod counts;
pub mod finding;
pub mod fix;
pub mod graph;
pub mod grep;
pub mod house;
pub mod isolation;
pub mod lex;
pub mod output;
pub mod parity;
pub mod rules;
pub mod say;
pub mod scan;
pub mod spdx;
pub mod stopwatch;
pub mod test;
#[cfg(test)]
mod testing;
pub mod verbs;
pub mod verify;
