//! `dlock run` on dlock's side: acquire, start, watch, release.

use std::{ffi::OsStr, fmt, pin::pin, sync::Arc, time::Duration};

use dlock_domain::{LockHandle, Session};
use dlock_ports::{Clock, Entropy, LockService};
use rustix::{io::Errno, process::Pid};
use tokio::sync::watch;

use super::{
    RunRequest, acquire, exit,
    guard::Guard,
    message::{Order, Report},
    people::say,
    raw::hear_of_children,
    release::{Ending, release},
    rescue,
    schedule::Lease,
    signals::Signals,
    streams,
};
use crate::keeper::{Keeper, KeeperState};

/// How long the supervisor's last reports may take to arrive.
const NEWS: Duration = Duration::from_millis(20);
/// How long the lock is tried to be given back, if its lease lasts that long: whoever waits for the
/// command is not kept waiting for a store.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a supervisor that has nothing left to do may take to end; and the release of a lock
/// that is lost already, which can change nothing any more but free it sooner.
const FAREWELL: Duration = Duration::from_secs(1);

/// How the command came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The exit code of the command itself, or of the failure to start it.
    command: Option<u8>,
    /// The lock was lost, or the end was begun because it could no longer be guaranteed.
    lost: bool,
    /// The supervisor died under the command.
    unguarded: bool,
}

/// Runs a command under a lock; answers the exit code (C3, [`exit`]).
///
/// `clock` is [`SystemClock`](crate::SystemClock): the supervisor compares with it too. Must run
/// on a runtime whose process does nothing else: it listens for signals, inherits orphans, and
/// gives standard input and output away to the command. The caller shuts the service down
/// afterwards.
pub async fn execute(
    service: Arc<dyn LockService>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    request: RunRequest,
) -> u8 {
    let Some(program) = request.command.first() else {
        say(format_args!("no command is given"));
        return exit::USAGE;
    };
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            say(format_args!("cannot listen for signals: {error}"));
            return exit::CANNOT_EXECUTE;
        }
    };
    let handle = match acquire::acquire(&*service, &*clock, &request, &mut signals).await {
        Ok(handle) => handle,
        Err(code) => return code,
    };
    let session = Session {
        id: handle.session,
        owner: handle.owner.clone(),
        ttl: handle.ttl,
        client_deadline: handle.client_deadline,
    };
    let held = vec![(handle.key.clone(), handle.token)];
    let keeper = Keeper::start(service.clone(), session, held, clock.clone(), entropy.clone());
    hear_of_children();
    rescue::prepare();
    let outcome = match Guard::start(&request.command, request.environment(handle.token)) {
        Ok(guard) => {
            // Only this process's own copies; where it fails, only the end of a stream is late.
            let _ = streams::give_away();
            let mut watching = Watching {
                guard,
                state: keeper.watch(),
                clock: &*clock,
                lease: Lease { deadline: handle.client_deadline, ttl: handle.ttl },
                handle: &handle,
                program,
                group: None,
                outcome: Outcome::default(),
            };
            watching.until_gone(&mut signals).await;
            watching.part().await;
            watching.outcome
        }
        Err(error) => {
            say(format_args!("cannot start a supervisor: {error}"));
            Outcome { command: Some(exit::CANNOT_EXECUTE), ..Outcome::default() }
        }
    };
    let until = keeper.deadline(&handle.key).unwrap_or(handle.client_deadline);
    let until = until.min(clock.now().after(PATIENCE));
    // First nothing renews any more, then the lock is given back (trap 37).
    keeper.stop().await;
    let farewell = clock.now().after(FAREWELL);
    let mut releasing = pin!(release(&*service, &*clock, &*entropy, &handle, until));
    let ending = tokio::select! {
        // The release first: it has begun before any signal is looked at, also one that came while
        // the command ended.
        biased;
        ending = &mut releasing => Some(ending),
        // Whoever signals now does not want to wait for a store that does not answer.
        _ = signals.next() => None,
        // Nor does anybody want to wait for one that was lost because the store does not answer.
        () = clock.sleep_until(farewell), if outcome.lost => Some(Ending::Unanswered),
    };
    let ending = match ending {
        Some(ending) => ending,
        // One that does answer has a second more.
        None => {
            let farewell = clock.now().after(FAREWELL);
            tokio::select! {
                biased;
                ending = releasing => ending,
                () = clock.sleep_until(farewell) => Ending::Unanswered,
            }
        }
    };
    conclude(outcome, ending)
}

/// The exit code, and what people should know.
fn conclude(outcome: Outcome, ending: Ending) -> u8 {
    if ending == Ending::Incident {
        say(format_args!("a promise of the lock store does not hold; see its log"));
        return exit::INCIDENT;
    }
    if ending == Ending::Lost && !outcome.lost {
        say(format_args!("the lock was lost: it was not there when it was given back"));
    }
    if ending == Ending::Unanswered && !outcome.lost {
        say(format_args!("the lock could not be given back: it ends with its lease"));
    }
    if outcome.lost || ending == Ending::Lost {
        return exit::LOST;
    }
    if outcome.unguarded {
        return exit::INCIDENT;
    }
    outcome.command.unwrap_or(exit::INCIDENT)
}

/// The time in which the command runs.
struct Watching<'a> {
    guard: Guard,
    state: watch::Receiver<KeeperState>,
    clock: &'a dyn Clock,
    /// The lease as last told to the supervisor.
    lease: Lease,
    handle: &'a LockHandle,
    program: &'a OsStr,
    /// The command's group, until its leader is known to have ended.
    group: Option<Pid>,
    outcome: Outcome,
}

impl Watching<'_> {
    /// Returns when the command and all that it left behind are gone.
    async fn until_gone(&mut self, signals: &mut Signals) {
        self.guard.order(Order::Lease(self.lease));
        // What the keeper said before anybody listened.
        self.follow();
        loop {
            // Every arm only waits and loses nothing when another comes first.
            tokio::select! {
                biased;
                report = self.guard.report() => match report {
                    Some(Report::Gone) => return,
                    Some(report) => self.hear(report),
                    None => {
                        say(format_args!("the supervisor died: ending the command"));
                        self.outcome.unguarded = true;
                        return rescue::end_everything(self.group, self.clock).await;
                    }
                },
                signal = signals.next() => self.guard.order(Order::Signal(signal)),
                // The keeper outlives this: the channel does not close.
                Ok(()) = self.state.changed() => self.follow(),
                () = self.clock.sleep_until(self.lease.backstop()) => {
                    if self.heard_the_end().await {
                        return;
                    }
                    self.outcome.lost = true;
                    say(format_args!("the supervisor did not end the command in time"));
                    return rescue::end_everything(self.group, self.clock).await;
                }
            }
        }
    }

    /// Whether the supervisor did its work, and the news of it is only just arriving: after a stop
    /// or a suspend everything is due at once.
    async fn heard_the_end(&mut self) -> bool {
        let limit = self.clock.now().after(NEWS);
        loop {
            tokio::select! {
                biased;
                report = self.guard.report() => match report {
                    Some(Report::Gone) => return true,
                    Some(report) => self.hear(report),
                    None => return false,
                },
                () = self.clock.sleep_until(limit) => return false,
            }
        }
    }

    /// Waits a moment for the supervisor's process itself to end.
    async fn part(&mut self) {
        tokio::select! {
            () = self.guard.ended() => {}
            () = self.clock.sleep_until(self.clock.now().after(FAREWELL)) => {}
        }
    }

    fn hear(&mut self, report: Report) {
        match report {
            Report::Started(group) => self.group = Pid::from_raw(group),
            Report::NotStarted(errno) => {
                let error = Errno::from_raw_os_error(errno);
                say(format_args!("cannot run {:?}: {error}", self.program));
                self.outcome.command = Some(exit::of_spawn(error));
            }
            Report::Exited(code) => {
                self.group = None;
                self.outcome.command = Some(code);
            }
            Report::Signaled(signal) => {
                self.group = None;
                self.outcome.command = Some(exit::of_signal(signal));
            }
            Report::Ending => self.lose(&"its lease could not be kept in time"),
            Report::Gone => {}
        }
    }

    /// Tells the supervisor what the keeper says.
    fn follow(&mut self) {
        let (deadline, loss) = {
            let state = self.state.borrow_and_update();
            (state.deadline(&self.handle.key), state.loss(&self.handle.key))
        };
        if let Some(reason) = loss {
            self.lose(&reason);
            self.guard.order(Order::Kill);
        } else if let Some(deadline) = deadline
            && deadline != self.lease.deadline
            && !self.outcome.lost
        {
            // The lifetime is the grant's own: a store that lengthens it later only means that
            // the command is ended relatively later, never too late.
            self.lease.deadline = deadline;
            self.guard.order(Order::Lease(self.lease));
        }
    }

    fn lose(&mut self, reason: &dyn fmt::Display) {
        if !self.outcome.lost {
            self.outcome.lost = true;
            let name = self.handle.key.name().as_str();
            say(format_args!("the lock {name:?} is lost ({reason}): ending the command"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_beats_everything_but_an_incident() {
        let fine = Outcome { command: Some(7), ..Outcome::default() };
        let lost = Outcome { lost: true, ..fine };
        let unguarded = Outcome { command: None, unguarded: true, lost: false };
        let table = [
            (fine, Ending::Released, 7),
            (fine, Ending::Unanswered, 7),
            (fine, Ending::Lost, 79),
            (fine, Ending::Incident, 70),
            (lost, Ending::Released, 79),
            (lost, Ending::Unanswered, 79),
            (lost, Ending::Incident, 70),
            (unguarded, Ending::Released, 70),
            (unguarded, Ending::Lost, 79),
            (Outcome::default(), Ending::Released, 70),
        ];
        for (outcome, ending, code) in table {
            assert_eq!(conclude(outcome, ending), code, "{outcome:?} {ending:?}");
        }
    }
}
