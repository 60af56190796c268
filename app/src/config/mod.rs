//! Configuration (C5): flag, then environment, then file, then default.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `table` | every key there is: the one table that everything else is driven by |
//! | `kind` | what a key's value may be |
//! | `sources` | reading the file and the environment, refusing what is not in the table |
//! | `settings` | the layers put together: each value, and where it came from |
//! | `etcd`, `postgres` | the keys of those stores |
//! | `effective` | the settings as the types that the program works with |
//! | `show` | them, and the table itself, for people |
//!
//! All that is wrong is reported at once, each with its place and its mend.

mod effective;
pub mod etcd;
mod kind;
pub mod postgres;
mod settings;
mod show;
mod sources;
mod table;

pub use effective::{BackendName, Effective, LogFormat};
pub use kind::Kind;
pub(crate) use kind::span as duration;
pub use settings::{Origin, Setting, Settings};
pub use show::{documentation, rows};
pub use sources::Sources;
pub use table::{Key, TABLE, key};

/// Something in the configuration that cannot stand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    /// The file and key, the variable, or the flag.
    pub place: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}
