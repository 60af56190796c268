//! `dlock session`, `floor`, `health`, `completions`, `man`.

use std::time::Duration;

use clap::CommandFactory as _;
use dlock_http::wire::{self, Asked};

use super::answer::{self, Answer, told};
use super::args::{Args, Completions, Floor, FloorRaise, Health, Man, Session};
use super::{out, owner, say, target};
use crate::run::exit;
use dlock_ports::Clock as _;

pub(crate) fn session(command: &Session) -> u8 {
    match command {
        Session::Open(options) => {
            let flags: &[_] = &[("lock.default.ttl", "--ttl", &options.ttl)];
            target::with(&options.place, flags, |target| async move {
                let opened = async {
                    let owner = options.owner.clone().map_or_else(owner::default, Ok)?;
                    let ttl = target.loaded.effective.default_ttl;
                    let session = target.locks.open_session(owner, ttl).await?;
                    Ok(lease(&target.clock, &session, |valid| wire::opened(&session, valid)))
                };
                told(opened.await, Asked::Write, options.format.json)
            })
        }
        Session::Keep(options) => target::with(&options.place, &[], |target| async move {
            let kept = async {
                let id = options.session.get()?;
                let kept = target.locks.keep_session(&id, &[]).await?;
                Ok(lease(&target.clock, &kept.session, |valid| wire::kept(&kept, valid)))
            };
            told(kept.await, Asked::Write, options.format.json)
        }),
        Session::Close(options) => target::with(&options.place, &[], |target| async move {
            let closed = async {
                let id = options.session.get()?;
                let closed = target.locks.close_session(&id).await?;
                let (code, word) = if closed { (0, "yes") } else { (exit::LOST, "it was gone") };
                let rows = [("closed", word.to_owned())];
                Ok(Answer::pairs(code, wire::closed(closed), rows))
            };
            told(closed.await, Asked::Write, options.format.json)
        }),
    }
}

fn lease(
    clock: &crate::SystemClock,
    session: &dlock_domain::Session,
    json: impl FnOnce(Duration) -> String,
) -> Answer {
    let valid = session.client_deadline.since(clock.now());
    let rows = [("session", session.id.expose()), ("valid for", answer::seconds(valid))];
    Answer::pairs(0, json(valid), rows)
}

pub(crate) fn floor(command: &Floor) -> u8 {
    let Floor::Raise(FloorRaise { place, format, at_least }) = command;
    target::with(place, &[], |target| async move {
        let raised = async {
            let namespace = &target.loaded.effective.namespace;
            let raised = target.locks.raise_floor(namespace, *at_least).await?;
            let rows = [
                ("namespace", namespace.as_str().to_owned()),
                ("token floor", raised.floor.to_string()),
                ("grants ended", raised.grants_ended.to_string()),
            ];
            Ok(Answer::pairs(0, wire::raised(namespace, &raised), rows))
        };
        told(raised.await, Asked::Write, format.json)
    })
}

pub(crate) fn health(options: &Health) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let healthy = target.probe().await;
        let healthy =
            healthy.map(|()| Answer::pairs(0, wire::ready(), [("ready", "yes".to_owned())]));
        told(healthy, Asked::Ready, options.format.json)
    })
}

pub(crate) fn completions(options: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Args::command(), "dlock", &mut script);
    out::plain(&script, 0)
}

/// One page for each command, into a directory; or the program's own on standard output.
pub(crate) fn man(options: &Man) -> u8 {
    let Some(directory) = &options.directory else {
        let mut page = Vec::new();
        // Writing into memory does not fail.
        let _ = clap_mangen::Man::new(Args::command()).render(&mut page);
        return out::plain(&page, 0);
    };
    match clap_mangen::generate_to(Args::command(), directory) {
        Ok(()) => 0,
        Err(error) => {
            say(format_args!("cannot write to {}: {error}", directory.display()));
            exit::CANNOT_EXECUTE
        }
    }
}
