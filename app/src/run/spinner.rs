//! A line on the terminal that shows that something goes on.
//!
//! Drawn by a thread of its own, since a write to a terminal that was stopped (Ctrl-S) blocks for
//! as long as somebody likes. Only a process in the terminal's foreground draws: in the background
//! the line would land in the middle of somebody else's, and may stop us (`stty tostop`).

use std::{
    io::{IsTerminal as _, stderr},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use dlock_ports::Clock;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::{io::Errno, termios::tcgetpgrp};
use tokio::sync::oneshot;

use super::family::own_group;

/// How often it turns.
const TURN: Duration = Duration::from_millis(100);
/// Words that the thread did not take yet; more are not worth showing.
const BACKLOG: usize = 2;

/// A line that is shown until it is cleared or dropped.
pub(super) struct Spinner {
    words: SyncSender<String>,
    cleared: oneshot::Receiver<()>,
}

impl Spinner {
    /// Shows a line on standard error; `None` where that is no terminal that can be drawn on.
    pub(super) fn start(first: &str) -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        if dumb || !stderr().is_terminal() {
            return None;
        }
        let (words, taken) = sync_channel(BACKLOG);
        let (done, cleared) = oneshot::channel();
        let first = first.to_owned();
        let drawing = thread::Builder::new().name("spinner".into()).spawn(move || {
            draw(first, &taken);
            // Nobody waits for it any more: then it is late, and nothing is lost.
            let _ = done.send(());
        });
        drawing.is_ok().then_some(Self { words, cleared })
    }

    /// Shows other words. Never waits: a terminal that takes none misses some.
    pub(super) fn show(&self, words: String) {
        let _ = self.words.try_send(words);
    }

    /// Clears the line. Returns when it is gone, or after `patience` if the terminal is stopped.
    pub(super) async fn clear(self, clock: &dyn Clock, patience: Duration) {
        drop(self.words);
        tokio::select! {
            biased;
            _ = self.cleared => {}
            () = clock.sleep_until(clock.now().after(patience)) => {}
        }
    }
}

/// Draws until nobody says anything any more, then clears.
fn draw(first: String, words: &Receiver<String>) {
    let target = ProgressDrawTarget::stderr();
    let bar = ProgressBar::with_draw_target(None, target).with_message(first);
    // Cut to the terminal's width: a line that wraps cannot be cleared.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    loop {
        if in_foreground() {
            bar.tick();
        }
        match words.recv_timeout(TURN) {
            Ok(words) if in_foreground() => bar.set_message(words),
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if !in_foreground() {
        // The line that is ours was left behind when we were sent to the background.
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.finish_and_clear();
}

/// Whether the terminal is ours to draw on; one that is not our session's has no background.
fn in_foreground() -> bool {
    match tcgetpgrp(stderr()) {
        Ok(group) => own_group() == Some(group.as_raw_pid()),
        // A group of another namespace, as ours then is too.
        Err(Errno::OPNOTSUPP) => own_group() == Some(0),
        Err(_) => true,
    }
}
