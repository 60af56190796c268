//! A process and the processes that it started, signalled as one.
//!
//! PostgreSQL gives each of its processes a session of its own, so a signal to a process group
//! reaches one of them only.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait;

/// Stops a process and its children, until all of them stand. The parent stands first, so that it
/// starts no more.
pub(crate) fn pause(parent: Pid) -> Vec<Pid> {
    stop(parent);
    let children = children(parent);
    children.iter().copied().for_each(stop);
    children
}

/// Lets them go on, the parent last.
pub(crate) fn resume(parent: Pid) {
    for pid in children(parent).into_iter().chain([parent]) {
        send(pid, Signal::CONT);
    }
}

/// Kills them at once; returns the children, which somebody else waits for.
pub(crate) fn kill(parent: Pid) -> Vec<Pid> {
    stop(parent);
    let children = children(parent);
    for pid in children.iter().copied().chain([parent]) {
        send(pid, Signal::KILL);
    }
    children
}

/// Waits until these are gone, whoever inherited them.
pub(crate) fn wait_until_gone(pids: &[Pid]) -> bool {
    wait::until(|| pids.iter().all(|pid| stat(*pid).is_none_or(|(state, _)| state == 'Z')))
}

/// The processes that a process started itself and that have not ended.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let pids = pids.filter_map(Pid::from_raw);
    let parent = parent.as_raw_nonzero().get();
    pids.filter(|pid| stat(*pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

/// `SIGSTOP`, until it stands or has ended.
fn stop(pid: Pid) {
    send(pid, Signal::STOP);
    let stands = wait::until(|| stat(pid).is_none_or(|(state, _)| matches!(state, 'T' | 'Z')));
    assert!(stands, "a process that was sent SIGSTOP goes on");
}

fn send(pid: Pid, signal: Signal) {
    // Fails only where it has ended.
    let _ = kill_process(pid, signal);
}

/// The state and the parent of a process.
fn stat(pid: Pid) -> Option<(char, i32)> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name before it, in brackets, can hold anything.
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn children_stand_go_on_and_die_with_their_parent() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "setsid sleep 600 & setsid sleep 600 & wait"]);
        let mut shell = shell.spawn().unwrap();
        let parent = Pid::from_child(&shell);
        assert!(wait::until(|| children(parent).len() == 2));
        let paused = pause(parent);
        let states = || paused.iter().map(|pid| stat(*pid).unwrap().0).collect::<String>();
        assert_eq!(states(), "TT");
        resume(parent);
        assert!(wait::until(|| states() == "SS"), "{}", states());
        pause(parent);
        let killed = kill(parent);
        assert_eq!(killed, paused);
        assert!(!shell.wait().unwrap().success());
        assert!(wait_until_gone(&killed));
    }
}
