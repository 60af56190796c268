//! `dlock session`, `floor`, `health`, `completions`, `man`.

use std::io::Write as _;

use clap::CommandFactory as _;
use serde_json::json;

use super::answer::{self, Answer};
use super::args::{Args, Completions, Floor, FloorRaise, Health, Session};
use super::locks::told;
use super::{owner, say, target};
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
                    Ok(lease(&target.clock, &session))
                };
                told(opened.await, options.place.json)
            })
        }
        Session::Keep(options) => target::with(&options.place, &[], |target| async move {
            let kept = async {
                let id = options.session.get()?;
                let kept = target.locks.keep_session(&id, &[]).await?;
                Ok(lease(&target.clock, &kept.session))
            };
            told(kept.await, options.place.json)
        }),
        Session::Close(options) => target::with(&options.place, &[], |target| async move {
            let closed = async {
                let id = options.session.get()?;
                let closed = target.locks.close_session(&id).await?;
                let (code, word) = if closed { (0, "yes") } else { (exit::LOST, "it was gone") };
                let rows = [("closed", word.to_owned())];
                Ok(Answer::pairs(code, json!({ "closed": closed }), rows))
            };
            told(closed.await, options.place.json)
        }),
    }
}

fn lease(clock: &crate::SystemClock, session: &dlock_domain::Session) -> Answer {
    let valid = session.client_deadline.since(clock.now());
    let json = json!({
        "session_id": session.id.expose(),
        "owner": session.owner.as_str(),
        "ttl_ms": session.ttl.as_millis(),
        "valid_ms": answer::millis(valid),
    });
    let rows = [("session", session.id.expose()), ("valid for", answer::seconds(valid))];
    Answer::pairs(0, json, rows)
}

pub(crate) fn floor(command: &Floor) -> u8 {
    let Floor::Raise(FloorRaise { place, at_least }) = command;
    target::with(place, &[], |target| async move {
        let raised = async {
            let namespace = &target.loaded.effective.namespace;
            let raised = target.locks.raise_floor(namespace, *at_least).await?;
            let json = json!({
                "namespace": namespace.as_str(),
                "token_floor": raised.floor.get(),
                "grants_ended": raised.grants_ended,
            });
            let rows = [
                ("namespace", namespace.as_str().to_owned()),
                ("token floor", raised.floor.to_string()),
                ("grants ended", raised.grants_ended.to_string()),
            ];
            Ok(Answer::pairs(0, json, rows))
        };
        told(raised.await, place.json)
    })
}

pub(crate) fn health(options: &Health) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let healthy = target
            .probe()
            .await
            .map(|()| Answer::pairs(0, json!({ "ready": true }), [("ready", "yes".to_owned())]));
        told(healthy, options.place.json)
    })
}

pub(crate) fn completions(options: &Completions) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Args::command(), "dlock", &mut script);
    // A closed pipe is no error.
    let _ = std::io::stdout().lock().write_all(&script);
    0
}

/// One page for each command, into a directory.
pub(crate) fn man(options: &super::args::Man) -> u8 {
    match clap_mangen::generate_to(Args::command(), &options.directory) {
        Ok(()) => 0,
        Err(error) => {
            say(format_args!("cannot write to {}: {error}", options.directory.display()));
            exit::CANNOT_EXECUTE
        }
    }
}
