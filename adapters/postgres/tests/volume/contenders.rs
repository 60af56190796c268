//! Fifty who want the same lock, through two servers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use dlock_conformance::SystemClock;
use dlock_domain::Ttl;
use dlock_ports::Clock as _;

use crate::kit::{Place, key, soon, try_once};

/// Who is granted writes its token down while it holds the lock, so the list is in grant order.
#[tokio::test(flavor = "multi_thread")]
async fn c46_tokens_strictly_rise_in_grant_order() {
    let place = Place::new().await;
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let servers = [place.store(week).await, place.store(week).await];
    let granted = Arc::new(Mutex::new(Vec::new()));
    let end = SystemClock::new().now().after(Duration::from_secs(10));
    let mut contenders = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (server, granted) = (servers[n % 2].clone(), Arc::clone(&granted));
        contenders.spawn(async move {
            while SystemClock::new().now() < end {
                let ttl = Ttl::from_millis(60_000).unwrap();
                if let Some(handle) = try_once(&server, &key("k"), ttl).await {
                    granted.lock().unwrap().push(handle.token.get());
                    let gone = server.locks.delete_if_owner(&key("k"), handle.token, soon()).await;
                    assert!(gone.unwrap_or_else(|error| panic!("{error}")), "it was held");
                } else {
                    // Each at its own pace, as waiters poll.
                    tokio::time::sleep(Duration::from_millis(5 + n as u64 % 17)).await;
                }
            }
        });
    }
    while let Some(done) = contenders.join_next().await {
        done.unwrap();
    }
    let granted = granted.lock().unwrap().clone();
    assert!(granted.len() > 10, "{} grants", granted.len());
    assert!(granted.is_sorted_by(|a, b| a < b), "{granted:?}");
    println!("{} grants to 50 contenders in 10 s", granted.len());
    place.finish().await;
}
