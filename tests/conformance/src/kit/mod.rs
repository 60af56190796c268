//! Short words for the cases: a caller with a budget, values, assertions, the passing of time.

mod asserting;
mod caller;
mod odd_names;
mod passing;
mod values;

pub use asserting::{
    assert_failed, assert_invalid, assert_refused, assert_set_between, granted, held,
};
pub use caller::{Caller, a, b};
pub use odd_names::odd_names;
pub use passing::{bounded, drive, outlive, settle, until};
pub use values::{
    attempt, key, key_in, long, millis, ns, of, owner, private, private_for, revocation,
    session_id, token,
};
