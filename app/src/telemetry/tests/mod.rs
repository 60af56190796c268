//! What is counted and logged, over the service and the memory store on a clock moved by hand.

mod bench;
mod calls;
mod gauges;
mod logs;
mod store;
mod waits;
