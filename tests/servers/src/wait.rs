//! Waiting for something, with an end.

use std::{thread::sleep, time::Duration};

/// Looks every 20 ms until something is so, for half a minute: only there to end a failing test.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..1_500 {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}
