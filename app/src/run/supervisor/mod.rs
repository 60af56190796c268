//! The supervisor: a small process that owns the command's processes and outlives dlock by as much
//! as it takes to end them (C52).
//!
//! One thread, no runtime, nothing that could wait for anything but its own short polls: the end
//! of the channel to dlock, the death of the command, and the next moment of the schedule. It
//! compares the lease's deadline with the boot clock itself, so a dlock that is stopped or hangs
//! changes nothing (C50).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `mod` | [`main`], and the loop |
//! | `channel` | orders in, reports out |
//! | `group` | the command and what descends from it |
//! | `terminal` | who has the terminal |

mod channel;
mod group;
mod terminal;

use std::{ffi::OsString, time::Duration};

use dlock_domain::Moment;
use dlock_ports::Clock as _;
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Signal, getpid, set_child_subreaper},
    thread::set_name,
    time::Timespec,
};

use crate::SystemClock;

use super::{
    exit,
    message::{Order, Report},
    people::say,
    raw::{Deaf, hear_of_children},
    schedule::{Action, Schedule},
    streams,
};
use channel::Channel;
use group::{Change, Group};
use terminal::Terminal;

/// The longest time without a look around.
const LOOK: Duration = Duration::from_millis(100);
/// The same while processes are left behind, and where the command's death wakes nobody.
const LOOK_OFTEN: Duration = Duration::from_millis(20);
/// The same while everything is being ended.
const LOOK_CLOSELY: Duration = Duration::from_millis(5);

/// `dlock supervise --control-fd N -- COMMAND…`, which only `dlock run` starts: call it from
/// `main` before any other thread begins. Answers the supervisor's own exit code, which nobody
/// depends on.
#[must_use]
pub fn main(control_fd: i32, command: &[OsString]) -> u8 {
    let mut channel = match Channel::adopt(control_fd) {
        Ok(channel) => channel,
        Err(error) => {
            say(format_args!("supervise is for dlock run only: {error}"));
            return exit::USAGE;
        }
    };
    // For whoever looks at a list of processes; without the name it works as well.
    let _ = set_name(c"lock-guard");
    let deaf = Deaf::become_deaf();
    hear_of_children();
    // Orphans of the command become ours instead of disappearing from sight.
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        say(format_args!("processes that the command leaves behind may escape: {error}"));
    }
    let Some((schedule, orders)) = first_lease(&mut channel) else { return exit::INCIDENT };
    let mut terminal = Terminal::of_parent();
    let group = match schedule.action(now()) {
        Action::Wait(_) => Group::start(command, deaf, terminal.as_mut()),
        // The lease is all but over: nothing is begun.
        Action::Term | Action::Kill => {
            channel.say(Report::Ending);
            channel.say(Report::Gone);
            return 0;
        }
    };
    // Not needed to guard; where it fails, only an early end of a stream is seen late.
    let _ = streams::give_away();
    match group {
        Ok(group) => {
            channel.say(Report::Started(group.number()));
            let mut supervisor = Supervisor { channel: Some(channel), group, schedule, terminal };
            orders.into_iter().for_each(|order| supervisor.obey(order));
            supervisor.until_gone();
        }
        Err(error) => {
            channel.say(Report::NotStarted(error.raw_os_error().unwrap_or(0)));
            channel.say(Report::Gone);
        }
    }
    0
}

/// The first order: the lease on which the command starts; and what was ordered with it, to be
/// obeyed once it has started. `None`: dlock is gone, or this is not dlock.
fn first_lease(channel: &mut Channel) -> Option<(Schedule, Vec<Order>)> {
    loop {
        let mut orders = channel.orders()?.into_iter();
        match orders.next() {
            Some(Order::Lease(lease)) => return Some((Schedule::new(lease), orders.collect())),
            Some(Order::Signal(_) | Order::Kill) => return None,
            None => {
                let mut ready = [PollFd::new(channel, PollFlags::IN)];
                // Woken for nothing: it looks again.
                let _ = poll(&mut ready, None);
            }
        }
    }
}

/// Now, on the clock that the deadlines are on.
fn now() -> Moment {
    SystemClock::new().now()
}

struct Supervisor {
    /// `None` once dlock is gone.
    channel: Option<Channel>,
    group: Group,
    schedule: Schedule,
    terminal: Option<Terminal>,
}

impl Supervisor {
    /// Returns when nothing of the command is left.
    fn until_gone(mut self) {
        loop {
            for change in self.group.changes() {
                self.hear(change);
            }
            if self.group.is_gone() {
                break;
            }
            self.listen();
            let next = self.enforce();
            if let Some(terminal) = &mut self.terminal {
                terminal.look(&self.group);
            }
            self.rest(next);
        }
        // Before the report: dlock may write to it then.
        if let Some(terminal) = &self.terminal {
            terminal.take_back(&self.group);
        }
        self.say(Report::Gone);
    }

    fn hear(&mut self, change: Change) {
        match change {
            Change::Exited(code) => self.say(Report::Exited(code)),
            Change::Signaled(signal) => self.say(Report::Signaled(signal)),
            Change::Stopped(signal) => {
                if let Some(terminal) = &mut self.terminal {
                    terminal.stopped(&self.group, signal);
                }
            }
        }
    }

    /// Takes in what dlock says. Its death says something too: end everything.
    fn listen(&mut self) {
        let Some(channel) = &mut self.channel else { return };
        match channel.orders() {
            Some(orders) => orders.into_iter().for_each(|order| self.obey(order)),
            None => {
                self.channel = None;
                self.schedule.condemn();
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Lease(lease) => self.schedule.renew(lease),
            Order::Signal(signal) => {
                self.group.signal(signal);
                // What is stopped would not hear it, and whoever stops a service expects it to end.
                if matches!(signal, Signal::TERM | Signal::HUP) {
                    self.group.signal(Signal::CONT);
                }
            }
            Order::Kill => self.schedule.condemn(),
        }
    }

    /// Does what the schedule says; answers when to look again at the latest.
    fn enforce(&mut self) -> Duration {
        let now = now();
        match self.schedule.action(now) {
            Action::Wait(until) => until.since(now),
            Action::Term => {
                self.schedule.begin(now);
                self.say(Report::Ending);
                self.group.end(Signal::TERM);
                LOOK_CLOSELY
            }
            Action::Kill => {
                if !self.schedule.ending() {
                    self.schedule.begin(now);
                    self.say(Report::Ending);
                }
                self.group.end(Signal::KILL);
                LOOK_CLOSELY
            }
        }
    }

    fn say(&mut self, report: Report) {
        if let Some(channel) = &mut self.channel {
            channel.say(report);
        }
    }

    /// Sleeps until something happens, or for a short time.
    fn rest(&self, next: Duration) {
        let death = self.group.death();
        let longest = if self.schedule.ending() {
            LOOK_CLOSELY
        } else if death.is_none() {
            LOOK_OFTEN
        } else {
            LOOK
        };
        let mut ready = Vec::with_capacity(2);
        ready.extend(self.channel.as_ref().map(|channel| PollFd::new(channel, PollFlags::IN)));
        ready.extend(death.map(|death| PollFd::new(death, PollFlags::IN)));
        // Never nothing at all: a moment that is due by less than a tick would spin.
        let time = next.min(longest).max(Duration::from_millis(1));
        let timeout = Timespec::try_from(time).ok();
        // Woken for nothing: the loop looks again.
        let _ = poll(&mut ready, timeout.as_ref());
    }
}
