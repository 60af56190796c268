//! What people at a terminal see while dlock waits for the lock: who has it, and how many wait.
//!
//! Only for show. It is looked for beside the acquire and never in its way: a look that fails or
//! hangs changes nothing, and the terminal is written to by a thread of its own ([`Spinner`]).

use std::{convert::Infallible, time::Duration};

use dlock_domain::{LockInfo, LockKey, Ttl, WallTime};
use dlock_ports::{Clock, LockService};

use super::{people::shown, spinner::Spinner};

/// How long a wait is too short to be worth a word.
const SHORT: Duration = Duration::from_millis(300);
/// How long between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a look may take.
const LOOK: Duration = Duration::from_secs(5);
/// How long a terminal that was stopped may keep us at the end: at most this, and no more of the
/// lease that may have been granted than an eighth.
const FAREWELL: Duration = Duration::from_secs(1);
/// How much of a name is shown, in characters.
const NAME: usize = 40;

/// A wait, as people see it.
pub(super) struct Waiting {
    key: LockKey,
    spinner: Option<Spinner>,
}

impl Waiting {
    /// Shows nothing yet.
    pub(super) fn new(key: LockKey) -> Self {
        Self { key, spinner: None }
    }

    /// Looks who has the lock and shows it, again and again; where nobody looks, only waits.
    ///
    /// Cancellation: leaves what it shows; see [`clear`](Self::clear).
    pub(super) async fn tell(
        &mut self,
        service: &dyn LockService,
        clock: &dyn Clock,
    ) -> Infallible {
        clock.sleep_until(clock.now().after(SHORT)).await;
        self.spinner = Spinner::start(&words(self.key.name().as_str(), None, clock.wall()));
        let Some(spinner) = &self.spinner else { return std::future::pending().await };
        loop {
            let limit = clock.now().after(LOOK);
            tokio::select! {
                biased;
                found = service.inspect(&self.key) => {
                    if let Ok(info) = found {
                        spinner.show(words(self.key.name().as_str(), info.as_ref(), clock.wall()));
                    }
                }
                () = clock.sleep_until(limit) => {}
            }
            clock.sleep_until(clock.now().after(PAUSE)).await;
        }
    }

    /// Leaves the terminal as it was; `ttl` is that of the lease that may run by now.
    pub(super) async fn clear(self, clock: &dyn Clock, ttl: Ttl) {
        if let Some(spinner) = self.spinner {
            let eighth = Duration::from_millis(ttl.as_millis()) / 8;
            spinner.clear(clock, eighth.min(FAREWELL)).await;
        }
    }
}

/// The line: bounded, and fit for a terminal.
fn words(name: &str, holder: Option<&LockInfo>, now: WallTime) -> String {
    let mut short: String = name.chars().take(NAME).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    let mut text = format!("waiting for {short:?}");
    if let Some(info) = holder {
        let held = now.since(info.acquired_at).as_secs();
        let left = info.server_expiry.since(now).as_secs();
        text.push_str(&format!(": held by {} for {held} s, expires in {left} s", info.owner));
        if info.waiter_count > 0 {
            text.push_str(&format!("; {} waiting", info.waiter_count));
        }
    }
    shown(&text)
}

#[cfg(test)]
mod tests {
    use dlock_domain::{FencingToken, LockName, Namespace, OwnerId, is_printable};

    use super::*;

    #[test]
    fn the_line_says_who_how_long_and_how_many_wait() {
        let info = |name: &str, waiter_count| LockInfo {
            key: LockKey::new(Namespace::default(), LockName::new(name).unwrap()),
            owner: OwnerId::new("me@host:1").unwrap(),
            session: None,
            token: FencingToken::from_user(7).unwrap(),
            acquired_at: WallTime::from_unix_millis(1_000),
            server_expiry: WallTime::from_unix_millis(31_000),
            waiter_count,
        };
        let now = WallTime::from_unix_millis(11_500);
        assert_eq!(
            words("job", Some(&info("job", 3)), now),
            "waiting for \"job\": held by me@host:1 for 10 s, expires in 19 s; 3 waiting"
        );
        assert!(words("job", Some(&info("job", 0)), now).ends_with("in 19 s"));
        assert_eq!(words("job", None, now), "waiting for \"job\"");
        let hostile = format!("{}\u{202e}\u{200b}", "x".repeat(35)) + &"y".repeat(400);
        let line = words(&hostile, None, now);
        assert!(line.chars().all(is_printable) && line.ends_with("…\""), "{line}");
    }
}
