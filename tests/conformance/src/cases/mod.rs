//! What every store must do, one file an idea, each case a function over a fresh store.
//!
//! A case that the [suite](crate::conformance) does not list is found by the `complete` test.

pub mod attempts;
pub mod capabilities;
pub mod deadlines;
pub mod directory;
pub mod expiry;
pub mod floors;
pub mod forget;
pub mod grant;
pub mod input;
pub mod keep_alive;
pub mod limits;
pub mod measured;
pub mod races;
pub mod reads;
pub mod release;
pub mod revoke;
pub mod sessions;
pub mod tokens;
pub mod unknown;
pub mod virtual_time;
pub mod waiting;
