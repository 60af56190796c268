//! What dlock does when its supervisor is gone, or did not end the command in time: it ends
//! everything itself.

use std::time::Duration;

use dlock_ports::Clock;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, set_child_subreaper, wait,
};

use super::{family, people::say};

/// How long between two looks at what is left.
const PAUSE: Duration = Duration::from_millis(10);

/// Makes this process the one that inherits the supervisor's orphans.
pub(super) fn prepare() {
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        tracing::debug!(%error, "orphans would not be inherited");
    }
}

/// Kills the command's group and everything else that descends from this process, and returns when
/// nothing is left. `group` is only passed while its leader is not known to have ended: then its
/// number still is its own, since an orphaned leader stays ours, unreaped.
///
/// A process that cannot die, in the kernel's hands, is waited for: the lock is better kept than
/// given away over its head.
pub(super) async fn end_everything(group: Option<Pid>, clock: &dyn Clock) {
    let mut quiet = 0;
    // A fork between two reads of the process table can be missed once.
    while quiet < 2 {
        if let Some(group) = group {
            // Nobody left in it is what is wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
        match family::living() {
            Ok(left) => {
                family::signal(&left, Signal::KILL);
                quiet = if left.is_empty() { quiet + 1 } else { 0 };
            }
            Err(error) => {
                say(format_args!("cannot see what the command left behind: {error}"));
                return;
            }
        }
        clock.sleep_until(clock.now().after(PAUSE)).await;
    }
    // The orphans were ours to inherit and are ours to bury.
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
