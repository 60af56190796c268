//! One store, and what its caller knows: enough to say "the newest token" in that store's terms.

use dlock_domain::{FencingToken, LockName, LockOutcome, Result, Session, SessionId, TokenFloor};
use dlock_ports::{Backend, Holder, InsertRequest};

use crate::{
    call::{Answer, Call},
    op::{AtLeast, Id, Op, Sess, Tok, Who},
    world::{self, KEYS, NAMESPACES, SLOTS},
};

pub(crate) struct Client {
    pub(crate) backend: Backend,
    /// The session last opened in each slot.
    sessions: [Option<Session>; SLOTS as usize],
    /// How many ids of its own the caller has used for each slot.
    generations: [u64; SLOTS as usize],
    /// The private session last made for each key.
    privates: [Option<SessionId>; KEYS as usize],
    /// The tokens granted for each key, newest first.
    tokens: [Vec<FencingToken>; KEYS as usize],
    /// The highest token or floor that the caller was told.
    highest: u64,
}

/// So many old tokens are remembered per key.
const REMEMBERED: usize = 4;

impl Client {
    pub(crate) fn new(backend: Backend) -> Self {
        Self {
            backend,
            sessions: Default::default(),
            generations: [0; SLOTS as usize],
            privates: Default::default(),
            tokens: Default::default(),
            highest: 0,
        }
    }

    /// The calls that a step means for this store. `repeatable`: the call's reply may be lost
    /// without a trace, so the caller chooses what it would otherwise be told.
    pub(crate) fn resolve(&mut self, op: &Op, repeatable: bool) -> Result<Vec<Call>> {
        let call = match op {
            Op::Open { slot, owner, ttl, id } => {
                let id = match id {
                    Id::Drawn if !repeatable => None,
                    Id::Same if self.slot(*slot).is_some() => self.slot(*slot).map(|s| s.id),
                    _ => Some(self.fresh_id(*slot)),
                };
                let (owner, ttl) = (world::owner(*owner)?, world::ttl(*ttl)?);
                Call::Open { slot: *slot, owner, ttl, id }
            }
            Op::KeepAlive { session, held } => {
                let mut listed = Vec::new();
                for (key, token) in held {
                    listed.push((world::key(*key)?, self.token(*key, *token)?));
                }
                Call::KeepAlive(self.session_id(*session), listed)
            }
            Op::Look(session) => Call::Look(self.session_id(*session)),
            Op::Close(session) => Call::Close(self.session_id(*session)),
            Op::Forget { key, who, attempt } => {
                let attempt = world::attempt(*key, *attempt);
                Call::Forget(world::key(*key)?, self.holder(*who)?, attempt)
            }
            Op::Insert { key, who, attempt, intent } => Call::Insert(InsertRequest {
                key: world::key(*key)?,
                holder: self.holder(*who)?,
                attempt: world::attempt(*key, *attempt),
                intent: *intent,
            }),
            Op::Extend { key, token } => Call::Extend(world::key(*key)?, self.token(*key, *token)?),
            Op::Delete { key, token } => Call::Delete(world::key(*key)?, self.token(*key, *token)?),
            Op::Read { key } => Call::Read(world::key(*key)?),
            Op::Revoke { key, expected } => {
                let expected = expected.map(|token| self.token(*key, token)).transpose()?;
                Call::Revoke(world::key(*key)?, expected)
            }
            Op::Reap { limit } => Call::Reap(u32::from(*limit)),
            Op::Raise { namespace, at_least } => {
                Call::Raise(world::namespace(*namespace)?, self.floor(*at_least)?)
            }
            Op::List { namespace, prefix, after, page } => {
                list(*namespace, *prefix, *after, *page)?
            }
            Op::Audit => return self.audit(),
            Op::Advance { .. } => return Ok(Vec::new()),
        };
        Ok(vec![call])
    }

    fn audit(&self) -> Result<Vec<Call>> {
        let mut calls = Vec::new();
        for namespace in 0..NAMESPACES {
            for page in [1, 3] {
                calls.push(list(namespace, 0, None, page)?);
            }
        }
        for slot in 0..SLOTS {
            calls.push(Call::Look(self.session_id(Sess::Slot(slot))));
        }
        for key in 0..KEYS {
            calls.push(Call::Look(self.session_id(Sess::OfLock(key))));
            calls.push(Call::Read(world::key(key)?));
        }
        Ok(calls)
    }

    /// Whether the store has what the call needs.
    pub(crate) fn can(&self, call: &Call) -> bool {
        match call {
            Call::Raise(..) => self.backend.floors.is_some(),
            Call::List { .. } => self.backend.directory.is_some(),
            _ => true,
        }
    }

    /// What an answer teaches the caller.
    pub(crate) fn learn(&mut self, call: &Call, answer: &Answer) {
        match (call, answer) {
            (Call::Open { slot, .. }, Answer::Opened(session)) => {
                if let Some(place) = self.sessions.get_mut(usize::from(*slot)) {
                    *place = Some(session.clone());
                }
            }
            (Call::Insert(request), Answer::Granted(handle)) => {
                let Some(at) = key_index(&request.key) else { return };
                if let Holder::Private { .. } = request.holder {
                    self.privates[at] = Some(handle.session);
                }
                let known = &mut self.tokens[at];
                if !known.contains(&handle.token) {
                    known.insert(0, handle.token);
                    known.truncate(REMEMBERED);
                }
                self.highest = self.highest.max(handle.token.get());
            }
            (
                _,
                Answer::Revoked(LockOutcome::Revoked { floor, .. } | LockOutcome::Free { floor }),
            ) => self.highest = self.highest.max(floor.get()),
            (_, Answer::Raised(raised)) => self.highest = self.highest.max(raised.floor.get()),
            _ => {}
        }
    }

    fn slot(&self, slot: u8) -> Option<&Session> {
        self.sessions.get(usize::from(slot)).and_then(Option::as_ref)
    }

    fn fresh_id(&mut self, slot: u8) -> SessionId {
        let generation = self.generations.get_mut(usize::from(slot)).map_or(0, |generation| {
            *generation += 1;
            *generation
        });
        world::session_id(slot, generation)
    }

    fn session_id(&self, session: Sess) -> SessionId {
        match session {
            Sess::Slot(slot) => self.slot(slot).map(|session| session.id),
            Sess::OfLock(key) => self.privates.get(usize::from(key)).copied().flatten(),
        }
        .unwrap_or_else(|| world::session_id(SLOTS, 0))
    }

    fn holder(&self, who: Who) -> Result<Holder> {
        Ok(match who {
            Who::Slot(slot) => Holder::Session(match self.slot(slot) {
                Some(session) => session.clone(),
                None => Session {
                    id: world::session_id(slot, 0),
                    owner: world::owner(0)?,
                    ttl: world::ttl(0)?,
                    client_deadline: dlock_domain::Moment::NEVER,
                },
            }),
            Who::Private { owner, ttl } => {
                Holder::Private { owner: world::owner(owner)?, ttl: world::ttl(ttl)? }
            }
        })
    }

    fn token(&self, key: u8, token: Tok) -> Result<FencingToken> {
        let known = |key: u8, age: u8| {
            self.tokens.get(usize::from(key)).and_then(|all| all.get(usize::from(age))).copied()
        };
        let found = match token {
            Tok::Known(age) => known(key, age),
            Tok::OfKey(other) => known(other, 0),
            Tok::NeverGranted => None,
        };
        found.map_or_else(|| FencingToken::from_user(FencingToken::MAX), Ok)
    }

    fn floor(&self, at_least: AtLeast) -> Result<TokenFloor> {
        TokenFloor::new(match at_least {
            AtLeast::Nothing => 0,
            AtLeast::Above => self.highest + 5,
            // With room for what the store has drawn and the caller was never told.
            AtLeast::TooFar => self.highest + TokenFloor::MAX_LEAP + (1 << 20),
        })
    }
}

fn list(namespace: u8, prefix: u8, after: Option<u8>, page: u8) -> Result<Call> {
    let after = after.and_then(|at| world::AFTERS.get(usize::from(at)).copied());
    Ok(Call::List {
        namespace: world::namespace(namespace)?,
        prefix: world::PREFIXES.get(usize::from(prefix)).copied().unwrap_or("").into(),
        after: after.map(LockName::new).transpose()?,
        limit: world::PAGES.get(usize::from(page)).copied().unwrap_or(1),
    })
}

fn key_index(key: &dlock_domain::LockKey) -> Option<usize> {
    (0..KEYS).find(|index| world::key(*index).is_ok_and(|k| k == *key)).map(usize::from)
}
