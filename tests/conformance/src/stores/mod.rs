//! The harnesses of the stores in this repository.

mod bare;
mod embedded;
mod etcd;
mod in_process;
mod memory;
mod over_http;
mod postgres;
mod real;

pub use bare::BareMemory;
pub use embedded::Embedded;
pub use etcd::{Cluster, Etcd, endpoints as etcd_endpoints};
pub use memory::Memory;
pub use over_http::OverHttp;
pub use postgres::{
    Database, Direct, Pooled, Postgres, Way, connect as postgres_connect, url as postgres_url,
};
pub use real::{Pair, Server, fresh_seed};
