//! What the service must do over every store, one file an idea, each case a function over a fresh
//! store.

pub mod acquiring;
pub mod draining;
pub mod line;
pub mod operating;
pub mod owning;
pub mod repeating;
pub mod storm;
pub mod timing;
pub mod vanishing;
pub mod watching;
