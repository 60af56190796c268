//! The HTTP adapter from outside: mapping tables through the router, and bad company through real
//! sockets.
#![expect(clippy::unwrap_used, reason = "a test that meets a surprise ends there")]
#![expect(clippy::panic, reason = "a test that meets a surprise ends there")]

mod acquire;
mod around;
mod docs;
mod floor;
mod heads;
mod health;
mod input;
mod inspect;
mod list;
mod metrics;
mod openapi;
mod overload;
mod page;
mod problems;
mod query;
mod release;
mod renew;
mod revoke;
mod secrets;
mod sessions;
mod shutdown;
mod sockets;
mod support;
mod traces;
