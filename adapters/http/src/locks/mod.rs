//! Locks, one file a call (C3).
//!
//! None of these breaks when its client hangs up: the service runs what it hands to the store in
//! tasks of its own, so dropping a handler gives up the answer only (trap 41).

mod acquire;
mod grant;
mod inspect;
mod release;
mod renew;

pub(crate) use acquire::acquire;
pub(crate) use inspect::inspect;
pub(crate) use release::release;
pub(crate) use renew::renew;
