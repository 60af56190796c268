//! The harnesses of the stores in this repository.

mod bare;
mod embedded;
mod etcd;
mod in_process;
mod memory;
mod over_http;
mod postgres;

pub use bare::BareMemory;
pub use embedded::Embedded;
pub use etcd::{Etcd, endpoints as etcd_endpoints, fresh_seed};
pub use memory::Memory;
pub use over_http::OverHttp;
pub use postgres::{Direct, Pooled, Postgres, connect as postgres_connect, url as postgres_url};
