//! Keeping sessions alive: with all their grants for whoever holds them, and without any for a
//! wait of the client's own.

use core::future::pending;

use dlock_domain::{
    ErrorKind, FencingToken, LockError, LockKey, Moment, Result, Session, SessionId, Ttl,
};
use dlock_ports::Kept;
use serde::{Deserialize, Serialize};

use crate::{
    call::{Call, Effect},
    core::Core,
    failure::Failure,
    private::Private,
    reply::Reply,
    session::{read_key, same_session},
};

#[derive(Serialize)]
struct KeepAlive<'a> {
    session_id: String,
    held: Vec<Held<'a>>,
}

#[derive(Serialize)]
struct Held<'a> {
    name: &'a str,
    namespace: &'a str,
    fencing_token: u64,
}

#[derive(Deserialize)]
struct StillThere {
    session_id: String,
    ttl_ms: u64,
    valid_ms: u64,
    lost: Vec<Lost>,
}

#[derive(Deserialize)]
struct Lost {
    name: String,
    namespace: String,
    fencing_token: u64,
}

/// One answer of a keep-alive.
struct Part {
    ttl: Ttl,
    deadline: Moment,
    lost: Vec<(LockKey, FencingToken)>,
}

/// Entries of one keep-alive, and their JSON in bytes: bodies over 64 KiB are refused, and a name
/// may take more than a kilobyte.
const MAX_HELD: usize = 200;
const MAX_HELD_BYTES: usize = 48 * 1024;

impl Core {
    /// Keeps a session alive, in as many calls as its grants need. Each answer speaks for the
    /// grants of its own call; the earliest of their deadlines holds for all (INV-03).
    pub(crate) async fn keep(
        &self,
        id: SessionId,
        held: &[(LockKey, FencingToken)],
    ) -> Result<Kept> {
        // The answer does not name the owner, who never changes.
        let owner = match self.known.session(id) {
            Some((owner, _)) => owner,
            None => self.look(id).await?.0.owner,
        };
        let (now, mut later) = held.split_at(fitting(held));
        let mut whole = self.keep_some(id, now).await?;
        while !later.is_empty() {
            let (now, rest) = later.split_at(fitting(later));
            let part = self.keep_some(id, now).await?;
            whole.deadline = whole.deadline.min(part.deadline);
            whole.lost.extend(part.lost);
            later = rest;
        }
        self.known.learned(id, &owner, whole.ttl);
        let session = Session { id, owner, ttl: whole.ttl, client_deadline: whole.deadline };
        Ok(Kept { session, lost: whole.lost })
    }

    async fn keep_some(&self, id: SessionId, held: &[(LockKey, FencingToken)]) -> Result<Part> {
        let listed = held.iter().map(|(key, token)| Held {
            name: key.name().as_str(),
            namespace: key.namespace().as_str(),
            fencing_token: token.get(),
        });
        let body = KeepAlive { session_id: id.expose(), held: listed.collect() };
        let call = Call::post("/v1/sessions/keepalive", &body, Effect::Write)?;
        let call = call.within(self.brisk(self.known.session(id).map(|(_, ttl)| ttl)));
        let kept = self.call(&call, |reply| read_kept(reply, id, held)).await?;
        Ok(kept.value)
    }

    /// Keeps the session of a waiter alive, if it has one of its own; ends only when that session
    /// cannot be kept, with the reason.
    ///
    /// # Cancellation
    /// Leaves nothing.
    pub(crate) async fn keep_waiting(&self, id: SessionId, private: Option<&Private>) -> LockError {
        let Some(private) = private else { return pending().await };
        let third = private.ttl.as_duration() / 3;
        loop {
            self.clock.sleep_until(self.clock.now().after(third)).await;
            match self.keep_some(id, &[]).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::SessionExpired => return error,
                // Not loss: the next one may get through (trap 36).
                Err(error) => tracing::debug!(%error, "a waiter's session was not kept alive"),
            }
        }
    }
}

/// How many entries go into one call; at least one, however long.
fn fitting(held: &[(LockKey, FencingToken)]) -> usize {
    let mut bytes = 0;
    let fits = held.iter().take(MAX_HELD).take_while(|(key, _)| {
        // Escapes at most double a name: control characters cannot be in it.
        bytes += 2 * key.name().as_str().len() + key.namespace().as_str().len() + 80;
        bytes <= MAX_HELD_BYTES
    });
    fits.count().max(1).min(held.len())
}

fn read_kept(
    reply: &Reply,
    id: SessionId,
    held: &[(LockKey, FencingToken)],
) -> core::result::Result<Part, Failure> {
    let kept: StillThere = reply.read(200)?;
    same_session(reply, id, &kept.session_id)?;
    let ttl = reply.part(Ttl::from_millis(kept.ttl_ms))?;
    let mut lost = Vec::with_capacity(kept.lost.len());
    for grant in kept.lost {
        let key = read_key(reply, &grant.namespace, &grant.name)?;
        let entry = (key, reply.part(FencingToken::from_user(grant.fencing_token))?);
        reply.expect(held.contains(&entry), "it calls lost what was not listed")?;
        lost.push(entry);
    }
    Ok(Part { ttl, deadline: reply.deadline(kept.valid_ms, ttl), lost })
}

#[cfg(test)]
mod tests {
    use dlock_domain::{LockName, Namespace};

    use super::*;

    fn entries(name: &str, count: usize) -> Vec<(LockKey, FencingToken)> {
        let key = LockKey::new(Namespace::default(), LockName::new(name).unwrap());
        vec![(key, FencingToken::from_user(FencingToken::MAX).unwrap()); count]
    }

    #[test]
    fn what_fits_into_a_body_is_counted_in_entries_and_in_bytes() {
        assert_eq!(fitting(&entries("k", 0)), 0);
        assert_eq!(fitting(&entries("k", 7)), 7);
        assert_eq!(fitting(&entries("k", 1_000)), MAX_HELD);
        let long = entries(&"\"".repeat(512), 1_000);
        let count = fitting(&long);
        let listed = long.iter().take(count).map(|(key, token)| Held {
            name: key.name().as_str(),
            namespace: key.namespace().as_str(),
            fencing_token: token.get(),
        });
        let body =
            KeepAlive { session_id: SessionId::from_bits(1).expose(), held: listed.collect() };
        let bytes = serde_json::to_vec(&body).unwrap().len();
        assert!(bytes <= 64 * 1024 && bytes > 32 * 1024, "{count} entries are {bytes} bytes");
    }
}
