//! The traits at dlock's seams, one a file; each method's docs are its contract (C2).
//!
//! | trait | who implements it | who calls it |
//! | --- | --- | --- |
//! | [`LockStore`], [`SessionStore`] | every store adapter | the service |
//! | [`ReleaseWaiter`], [`Directory`], [`FloorControl`] | stores that can | the service, found once through [`Backend`] |
//! | [`LockService`] | the service; a client over a wire | transports, the keeper, the guard |
//! | [`Clock`], [`Entropy`] | the application; tests | everyone who needs time or chance |
//!
//! What is deliberately absent: default method bodies (a decorator that forgets a method does not
//! compile), public integers for a store's history ([`Observed`] holds a private type), and
//! time-outs hidden in adapters (a [`Deadline`](dlock_domain::Deadline) comes in).
//!
//! # What every store promises
//! - **Deadlines.** A call returns soon after its deadline. If a write had not begun by then it
//!   never will, and the error says `applied: No`; otherwise it says `Unknown`.
//! - **Dropped futures.** Dropping a future at any await never breaks the store. A write may then
//!   have happened, or still happen, exactly as if its reply had been lost: each method says how
//!   to find out.
//! - **Answers come after durability.** What a store answered survives the death of its process,
//!   and, where it keeps files, of the machine.

mod backend;
mod clock;
mod directory;
mod entropy;
mod floor_control;
mod lock_service;
mod lock_store;
mod observed;
mod release_waiter;
mod session_store;

pub use backend::Backend;
pub use clock::Clock;
pub use directory::{Directory, ListRequest, Page};
pub use entropy::Entropy;
pub use floor_control::{FloorControl, Raised};
pub use lock_service::{AcquireRequest, Acquired, Current, LockService, Released, SessionRef};
pub use lock_store::{
    Attempt, Consistency, Holder, InsertRequest, Intent, LockStore, RevokeRequest,
};
pub use observed::Observed;
pub use release_waiter::{ReleaseWaiter, WaitEnd};
pub use session_store::{HeldGrant, Kept, SessionStore};
