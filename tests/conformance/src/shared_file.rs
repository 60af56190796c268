//! A resource outside the store: a number in a file, read, changed and written back without any
//! atomicity of its own. Only the lock keeps two processes from losing each other's updates.

use core::time::Duration;
use std::{fs, path::Path};

use dlock_domain::{FencingToken, LockKey};
use dlock_ports::Attempt;

use crate::kit::{Caller, attempt, private};

/// The number in the file; 0 if there is none.
///
/// # Panics
/// If the file holds anything else.
pub fn read(file: &Path) -> u64 {
    fs::read_to_string(file).map_or(0, |text| text.parse().expect("a number"))
}

/// Adds 1 so many times, each time under the lock; the tokens in the order of the grants.
///
/// # Panics
/// If a grant is lost, or tokens fall.
pub async fn count_up(
    caller: &Caller,
    key: &LockKey,
    file: &Path,
    times: u32,
) -> Vec<FencingToken> {
    let mut tokens = Vec::new();
    while tokens.len() < times as usize {
        let shot = caller.insert(key, &private("counter"), attempt()).await;
        let Attempt::Granted(handle) = shot.expect("every shot is answered") else {
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        let number = read(file);
        tokio::task::yield_now().await;
        fs::write(file, (number + 1).to_string()).expect("the file is written");
        tokens.push(handle.token);
        assert!(caller.release(&handle).await, "the grant was held all the while");
    }
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later), "INV-04: {tokens:?}");
    tokens
}
