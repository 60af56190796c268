//! `dlock acquire`, `renew`, `release`, `inspect`, `list`, `revoke`.

use std::sync::Arc;

use dlock_domain::{LockError, LockHandle, LockKey, LockName, LockOutcome};
use dlock_ports::{
    AcquireRequest, Acquired, Clock as _, Current, ListRequest, Released, RevokeRequest, SessionRef,
};
use serde_json::{Value, json};

use super::answer::{self, Answer, info_json};
use super::args::{Acquire, Inspect, List, Release, Renew, Revoke};
use super::target::Target;
use super::{owner, target};
use crate::run::exit;

type Outcome = Result<Answer, LockError>;

fn key(target: &Target, name: &LockName) -> LockKey {
    LockKey::new(target.loaded.effective.namespace.clone(), name.clone())
}

/// Prints an answer or a failure.
pub(super) fn told(outcome: Outcome, json: bool) -> u8 {
    match outcome {
        Ok(answer) => answer.print(json),
        Err(error) => answer::fail(&error, json),
    }
}

pub(crate) fn acquire(options: &Acquire) -> u8 {
    let flags: &[_] = &[("lock.default.ttl", "--ttl", &options.ttl)];
    target::with(&options.place, flags, |target| async move {
        told(do_acquire(&target, options).await, options.place.json)
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
        Acquired::NotGranted { holder } => {
            let json = json!({
                "type": "urn:dlock:problem:not-granted",
                "status": 409,
                "detail": "the lock is held",
                "retryable": false,
                "applied": "no",
                "holder": holder.as_ref().map_or(Value::Null, info_json),
            });
            let mut rows = vec![vec!["not granted".to_owned()]];
            if let Some(holder) = &holder {
                rows.push(answer::info_head());
                rows.push(answer::info_row(holder));
            }
            Ok(Answer { code: exit::NOT_GRANTED, json, rows })
        }
    }
}

fn granted(target: &Target, handle: &LockHandle) -> Answer {
    let valid = handle.client_deadline.since(target.clock.now());
    let json = json!({
        "name": handle.key.name().as_str(),
        "namespace": handle.key.namespace().as_str(),
        "owner": handle.owner.as_str(),
        "session_id": handle.session.expose(),
        "fencing_token": handle.token.get(),
        "ttl_ms": handle.ttl.as_millis(),
        "valid_ms": answer::millis(valid),
    });
    Answer::pairs(
        0,
        json,
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
        told(renewed.await, options.place.json)
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
        told(released.await, options.place.json)
    })
}

/// `released: false` is loss for a release by token; an attempt that is settled may well have
/// held nothing.
fn released_answer(Released { released, current }: Released, by_token: bool) -> Answer {
    let current = match current {
        Current::None => "none",
        Current::Same => "same",
        Current::Other => "other",
        Current::Unknown => "unknown",
    };
    let code = if released || !by_token { 0 } else { exit::LOST };
    let word = if released { "yes" } else { "no" };
    Answer::pairs(
        code,
        json!({ "released": released, "current": current }),
        [("released", word.to_owned()), ("held now by", current.to_owned())],
    )
}

pub(crate) fn inspect(options: &Inspect) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let inspected = async {
            let found = target.locks.inspect(&key(&target, &options.name)).await?;
            Ok(match found {
                Some(info) => Answer {
                    code: 0,
                    json: info_json(&info),
                    rows: vec![answer::info_head(), answer::info_row(&info)],
                },
                None => Answer {
                    code: 1,
                    json: json!({
                        "type": "urn:dlock:problem:not-held",
                        "status": 404,
                        "detail": "nobody holds the lock",
                        "retryable": false,
                    }),
                    rows: vec![vec!["free".to_owned()]],
                },
            })
        };
        told(inspected.await, options.place.json)
    })
}

/// Locks asked for in one page.
const PAGE: u16 = 500;

pub(crate) fn list(options: &List) -> u8 {
    target::with(&options.place, &[], |target| async move {
        let listed = async {
            let mut locks = Vec::new();
            let mut after = None;
            loop {
                let left = options.limit.saturating_sub(u32::try_from(locks.len()).unwrap_or(0));
                let request = ListRequest {
                    namespace: target.loaded.effective.namespace.clone(),
                    prefix: options.prefix.as_str().into(),
                    after: after.take(),
                    limit: u16::try_from(left).unwrap_or(PAGE).min(PAGE),
                };
                let page = target.locks.list(request).await?;
                locks.extend(page.locks);
                after = page.next;
                if after.is_none() || locks.len() >= options.limit as usize {
                    break;
                }
            }
            let mut rows = vec![answer::info_head()];
            rows.extend(locks.iter().map(answer::info_row));
            if after.is_some() {
                rows.push(vec!["…".to_owned()]);
            }
            let json = json!({
                "locks": locks.iter().map(info_json).collect::<Vec<_>>(),
                "more": after.is_some(),
            });
            Ok(Answer { code: 0, json, rows })
        };
        told(listed.await, options.place.json)
    })
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
        told(revoked.await, options.place.json)
    })
}

fn revoked_answer(outcome: LockOutcome) -> Answer {
    let (revoked, previous, floor) = match outcome {
        LockOutcome::Revoked { previous, floor } => (true, Some(previous), floor),
        LockOutcome::Free { floor } => (false, None, floor),
        LockOutcome::Mismatch { current } => {
            let current = current.map(dlock_domain::FencingToken::get);
            let json = json!({
                "type": "urn:dlock:problem:token-mismatch",
                "status": 409,
                "detail": "the live grant is not the expected one",
                "retryable": false,
                "applied": "no",
                "current_token": current,
            });
            let current = current.map_or_else(|| "none".to_owned(), |token| token.to_string());
            return Answer::pairs(
                exit::NOT_GRANTED,
                json,
                [("revoked", "no: another token".to_owned()), ("current token", current)],
            );
        }
    };
    let previous = previous.map(dlock_domain::FencingToken::get);
    let json = json!({
        "revoked": revoked,
        "previous_token": previous,
        "new_token_floor": floor.get(),
    });
    Answer::pairs(
        0,
        json,
        [
            ("revoked", if revoked { "yes" } else { "nobody held it" }.to_owned()),
            ("previous token", previous.map_or_else(|| "none".to_owned(), |t| t.to_string())),
            ("token floor", floor.to_string()),
        ],
    )
}
