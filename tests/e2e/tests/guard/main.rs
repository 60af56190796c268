//! The guard over the HTTP client, through a proxy that misbehaves, at a real server: what the
//! guard's own tests show on a store in the same process, once more through sockets.
//!
//! Where a case is about time on the holder's side, the client is on a clock that the test moves:
//! the server's leases then last for longer than any test, nothing depends on how busy the machine
//! is, and deadlines are exact. Where a lease has to end at the server, both are on the boot clock,
//! and what is asserted is an order.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod cut;
mod keeping;
mod leaving;
mod paused;
mod stale;
mod waiting;
mod world;
