//! Worker processes: this program once more, stopped and continued like any process.

use std::{env, path::Path, process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    Failed,
    rail::{DATABASE, Place},
    report::{Event, Report},
};

/// How long a worker may say nothing before it is taken for stuck.
const SILENCE: Duration = Duration::from_secs(60);

/// How long after the first one's stop the second one should have the lock, several leases.
const TAKE_OVER: Duration = Duration::from_secs(10);

/// How often the first one may run for a moment until then.
const MOMENTS: u32 = 10;

/// Where workers are started.
pub(crate) struct Stage<'a> {
    place: &'a Place,
    locks: &'a Path,
}

/// A worker. Dropping it leaves nothing running.
pub(crate) struct Actor {
    name: &'static str,
    process: Child,
    pid: Pid,
    said: Lines<BufReader<ChildStdout>>,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(place: &'a Place, locks: &'a Path) -> Self {
        Self { place, locks }
    }

    /// Starts a worker.
    pub(crate) fn enter(
        &self,
        name: &'static str,
        stop_before: Option<i64>,
    ) -> Result<Actor, Failed> {
        let guarded = if self.place.guarded() { "guarded" } else { "unguarded" };
        let stop_before = stop_before.map_or_else(|| "-".into(), |payment| payment.to_string());
        let mut command = Command::new(env::current_exe()?);
        command.args(["worker", name, self.place.schema()]).arg(self.locks);
        command.args([guarded, &stop_before]);
        // Not among the arguments, which everybody can read.
        command.env(DATABASE, self.place.url());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let pid = process.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let said = process.stdout.take().ok_or("it has no output")?;
        let said = BufReader::new(said).lines();
        Ok(Actor { name, process, pid: pid.ok_or("it is gone")?, said })
    }
}

impl Actor {
    /// Hears the next thing that it says; nothing at its end.
    pub(crate) async fn hears(&mut self, report: &mut Report) -> Result<Option<Event>, Failed> {
        let next = timeout(SILENCE, self.said.next_line()).await;
        let line = next.map_err(|_| format!("{} says nothing any more", self.name))??;
        let Some(line) = line else { return Ok(None) };
        let event = Event::read(&line).ok_or_else(|| format!("{} says {line:?}", self.name))?;
        report.heard(self.name, &event);
        Ok(Some(event))
    }

    /// Hears it out until it takes the lock.
    ///
    /// The other one is stopped, and it may have been in the middle of a write to the file that the
    /// locks are in, as others wait for. Letting it run for a moment is all that helps then; it has
    /// its next payment still before it.
    pub(crate) async fn takes_over_from(
        &mut self,
        other: &Self,
        report: &mut Report,
    ) -> Result<(), Failed> {
        for _ in 0..MOMENTS {
            let Ok(event) = timeout(TAKE_OVER, self.hears(report)).await else {
                other.resume()?;
                other.stop()?;
                continue;
            };
            let event = event?.ok_or_else(|| format!("{} ends without the lock", self.name))?;
            if event.takes_the_lock() {
                return Ok(());
            }
        }
        Err(format!("{} does not get the lock", self.name).into())
    }

    /// Hears it out to its end.
    pub(crate) async fn ends(&mut self, report: &mut Report) -> Result<(), Failed> {
        while self.hears(report).await?.is_some() {}
        let status = self.process.wait().await?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{} failed: {status}", self.name).into())
        }
    }

    /// Stops it in the middle of whatever it is doing; returns when it has stopped.
    pub(crate) fn stop(&self) -> Result<(), Failed> {
        kill_process(self.pid, Signal::STOP)?;
        waitid(WaitId::Pid(self.pid), WaitIdOptions::STOPPED)?;
        Ok(())
    }

    /// Lets it run again.
    pub(crate) fn resume(&self) -> Result<(), Failed> {
        Ok(kill_process(self.pid, Signal::CONT)?)
    }

    /// Writes the line that it waits for.
    pub(crate) async fn go_on(&mut self) -> Result<(), Failed> {
        let stdin = self.process.stdin.as_mut().ok_or("it has no input")?;
        stdin.write_all(b"\n").await?;
        Ok(stdin.flush().await?)
    }
}
