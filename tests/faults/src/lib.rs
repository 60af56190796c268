//! Faults for tests: a TCP proxy that misbehaves on request.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`proxy`](Proxy) | the proxy, its port, and the orders a test gives it |
//! | [`orders`](Direction) | what is done with bytes, per direction |
//! | [`counts`](Counts) | what went through, to look at and to wait for |
//! | `connection` | one client, one upstream, and the two streams of bytes between them |
//!
//! Put it between a client and a server, or between a server and its store, and change its
//! behaviour while they talk. A test waits for what happened ([`Proxy::counted`]), never for time
//! to pass.
//!
//! Deliberately absent: chance. Which fault comes when is the test's decision, so that a run can be
//! repeated.

mod connection;
mod counts;
mod orders;
mod proxy;
#[cfg(test)]
mod tests;

pub use counts::Counts;
pub use orders::Direction;
pub use proxy::Proxy;
