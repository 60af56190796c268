//! `dlock acquire`, `renew`, `release`, `inspect`, `list`, `revoke`.

use std::sync::Arc;

use dlock_domain::{FencingToken, LockError, LockHandle, LockKey, LockName, LockOutcome};
use dlock_http::wire::{self, Asked};
use dlock_ports::{
    AcquireRequest, Acquired, Clock as _, Current, ListRequest, Page, Released, RevokeRequest,
    SessionRef,
};

use super::answer::{self, Answer, told};
use super::args::{Acquire, Inspect, List, Release, Renew, Revoke};
use super::table::{Table, Tone};
use super::target::Target;
use super::{owner, target};
use crate::run::exit;

type Outcome = Result<Answer, LockError>;

fn key(target: &Target, name: &LockName) -> LockKey {
    LockKey::new(target.loaded.effective.namespace.clone(), name.clone())
}

pub(crate) fn acquire(options: &Acquire) -> u8 {
    let flags: &[_] = &[("lock.default.ttl", "--ttl", &options.ttl)];
    target::with(&options.place, flags, |target| async move {
        told(do_acquire(&target, options).await, Asked::Write, options.format.json)
    })
}

async fn do_acquire(target: &Arc<Target>, options: &Acquire) -> Outcome {
    let session = match &options.session {
        Some(session) => SessionRef::Id(session.get()?),
        None => SessionRef::Private {
            owner: options.owner.clone().map_or_else(owner::default, Ok)?,
            ttl: target.loaded.effective.default_ttl,
        },
    };
    let request = AcquireRequest {
        key: key(target, &options.name),
        session,
        attempt: options.attempt,
        max_wait: options.wait,
    };
    match target.locks.acquire(request).await? {
        Acquired::Granted(handle) => Ok(granted(target, &handle)),
        Acquired::NotGranted { holder } => Ok(Answer {
            code: exit::NOT_GRANTED,
            json: wire::not_granted(holder.as_ref(), answer::now()),
            table: Table {
                headline: Some((Tone::Bad, "not granted")),
                head: if holder.is_some() { answer::INFO_HEAD } else { &[] },
                rows: holder.iter().map(answer::info_row).collect(),
                foot: None,
            },
        }),
    }
}

fn granted(target: &Target, handle: &LockHandle) -> Answer {
    let valid = handle.client_deadline.since(target.clock.now());
    Answer::pairs(
        0,
        wire::grant(handle, valid),
        [
            ("token", handle.token.to_string()),
            ("session", handle.session.expose()),
            ("valid for", answer::seconds(valid)),
        ],
    )
}

pub(crate) fn renew(options: &Renew) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let renewed = async {
            let session = options.session.get()?;
            let key = key(&target, &options.name);
            let handle = target.locks.renew(&key, options.token, &session).await?;
            Ok(granted(&target, &handle))
        };
        told(renewed.await, Asked::Write, options.format.json)
    })
}

pub(crate) fn release(options: &Release) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let released = async {
            let session = options.session.get()?;
            let key = key(&target, &options.name);
            let released = match (options.token, options.attempt) {
                (Some(token), _) => target.locks.release(&key, token, &session).await?,
                (None, Some(attempt)) => {
                    target.locks.forget(&key, &SessionRef::Id(session), attempt).await?
                }
                (None, None) => {
                    return Err(LockError::invalid("fencing_token", "pass --token or --attempt"));
                }
            };
            Ok(released_answer(released, options.token.is_some()))
        };
        told(released.await, Asked::Write, options.format.json)
    })
}

/// `released: false` is loss for a release by token; an attempt that is settled may well have
/// held nothing.
fn released_answer(outcome: Released, by_token: bool) -> Answer {
    let current = match outcome.current {
        Current::None => "nobody",
        Current::Same => "this session",
        Current::Other => "another session",
        Current::Unknown => "unknown",
    };
    let (code, word) = match (outcome.released, by_token) {
        (true, _) => (0, "yes"),
        (false, true) => (exit::LOST, "no: it was lost"),
        (false, false) => (0, "no: the attempt held nothing"),
    };
    let rows = [("released", word.to_owned()), ("held now by", current.to_owned())];
    Answer::pairs(code, wire::released(&outcome), rows)
}

pub(crate) fn inspect(options: &Inspect) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let inspected = async {
            let found = target.locks.inspect(&key(&target, &options.name)).await?;
            Ok(match found {
                Some(info) => Answer {
                    code: 0,
                    json: wire::info(&info, answer::now()),
                    table: Table {
                        head: answer::INFO_HEAD,
                        rows: vec![answer::info_row(&info)],
                        ..Table::default()
                    },
                },
                None => Answer {
                    code: 1,
                    json: wire::not_held(),
                    table: Table { headline: Some((Tone::Good, "free")), ..Table::default() },
                },
            })
        };
        told(inspected.await, Asked::Read, options.format.json)
    })
}

/// Locks asked for in one page.
const PAGE: u16 = 500;

pub(crate) fn list(options: &List) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let listed = async {
            let page = pages(&target, options).await?;
            let more = page.next.as_ref();
            let foot = more.map(|next| format!("more: --cursor {}", wire::write_cursor(next)));
            let rows = page.locks.iter().map(answer::info_row).collect();
            let table = Table { head: answer::INFO_HEAD, rows, foot, ..Table::default() };
            Ok(Answer { code: 0, json: wire::page(&page, answer::now()), table })
        };
        told(listed.await, Asked::Read, options.format.json)
    })
}

/// One page for people, as large as they like: made of as many of the store's as it takes.
async fn pages(target: &Target, options: &List) -> Result<Page, LockError> {
    let mut page = Page { locks: Vec::new(), next: options.cursor.clone() };
    loop {
        let left = options.limit.saturating_sub(u32::try_from(page.locks.len()).unwrap_or(0));
        let request = ListRequest {
            namespace: target.loaded.effective.namespace.clone(),
            prefix: options.prefix.as_str().into(),
            after: page.next.take(),
            limit: u16::try_from(left).unwrap_or(PAGE).min(PAGE),
        };
        let more = target.locks.list(request).await?;
        page.locks.extend(more.locks);
        page.next = more.next;
        if page.next.is_none() || page.locks.len() >= options.limit as usize {
            return Ok(page);
        }
    }
}

pub(crate) fn revoke(options: &Revoke) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let revoked = async {
            let request = RevokeRequest {
                actor: options.actor.clone().map_or_else(owner::default, Ok)?,
                reason: options.reason.clone(),
                expected: options.expected_token,
            };
            let outcome = target.locks.revoke(&key(&target, &options.name), request).await?;
            Ok(revoked_answer(outcome))
        };
        told(revoked.await, Asked::Write, options.format.json)
    })
}

fn revoked_answer(outcome: LockOutcome) -> Answer {
    let token = |token: Option<FencingToken>| {
        token.map_or_else(|| "none".to_owned(), |token| token.to_string())
    };
    let json = wire::revoked(outcome);
    let (word, previous, floor) = match outcome {
        LockOutcome::Revoked { previous, floor } => ("yes", Some(previous), floor),
        LockOutcome::Free { floor } => ("nobody held it", None, floor),
        LockOutcome::Mismatch { current } => {
            let rows =
                [("revoked", "no: another token".to_owned()), ("current token", token(current))];
            return Answer::pairs(exit::NOT_GRANTED, json, rows);
        }
    };
    let rows = [
        ("revoked", word.to_owned()),
        ("previous token", token(previous)),
        ("token floor", floor.to_string()),
    ];
    Answer::pairs(0, json, rows)
}
