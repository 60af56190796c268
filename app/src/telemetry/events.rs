//! Every log line that carries an `event` (C4), so that their names and fields stand in one place.
//!
//! What is not known is left out. A session's id is a secret and never here.

use std::error::Error as _;

use dlock_domain::{
    FencingToken, Invariant, LockError, LockHandle, LockKey, LockName, LockOutcome, Namespace,
    OwnerId, Session,
};

use super::outcome::RevokeOutcome;

/// Whom or what a store call was about, as far as its arguments say.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    pub(crate) namespace: Option<&'a Namespace>,
    pub(crate) name: Option<&'a LockName>,
    pub(crate) owner: Option<&'a OwnerId>,
    pub(crate) token: Option<FencingToken>,
}

impl<'a> About<'a> {
    pub(crate) fn key(key: &'a LockKey) -> Self {
        Self { namespace: Some(key.namespace()), name: Some(key.name()), ..Self::default() }
    }
}

/// Hot: debug.
pub(crate) fn lock_acquired(handle: &LockHandle) {
    tracing::debug!(
        event = "lock_acquired",
        namespace = %handle.key.namespace(),
        key = %handle.key.name(),
        owner = %handle.owner,
        token = handle.token.get(),
    );
}

/// Hot: debug. `released` is false where the grant had ended before.
pub(crate) fn lock_released(
    key: &LockKey,
    owner: Option<&OwnerId>,
    token: Option<FencingToken>,
    released: bool,
) {
    tracing::debug!(
        event = "lock_released",
        namespace = %key.namespace(),
        key = %key.name(),
        owner = owner.map(tracing::field::display),
        token = token.map(FencingToken::get),
        released,
    );
}

/// The store says that a grant is not there whose holder believes in it.
pub(crate) fn lock_lost(key: &LockKey, owner: Option<&OwnerId>, token: FencingToken) {
    tracing::info!(
        event = "lock_lost",
        namespace = %key.namespace(),
        key = %key.name(),
        owner = owner.map(tracing::field::display),
        token = token.get(),
    );
}

/// `token` is the grant's that was ended, or that stands in the way of a mismatch; `owner` is its
/// holder, `actor` who revoked.
pub(crate) fn lock_revoked(
    key: &LockKey,
    owner: Option<&OwnerId>,
    actor: &OwnerId,
    outcome: &LockOutcome,
) {
    let (token, floor) = match outcome {
        LockOutcome::Revoked { previous, floor } => (Some(*previous), Some(*floor)),
        LockOutcome::Free { floor } => (None, Some(*floor)),
        LockOutcome::Mismatch { current } => (*current, None),
    };
    tracing::info!(
        event = "lock_revoked",
        namespace = %key.namespace(),
        key = %key.name(),
        owner = owner.map(tracing::field::display),
        token = token.map(FencingToken::get),
        %actor,
        outcome = RevokeOutcome::from(outcome).word(),
        floor = floor.map(|floor| floor.get()),
    );
}

/// For an operator to see, whoever the caller was.
pub(crate) fn lock_incident(invariant: Invariant, error: &LockError, about: About<'_>) {
    let mut causes = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push_str(if causes.is_empty() { "" } else { ": " });
        causes.push_str(&cause.to_string());
        source = cause.source();
    }
    tracing::error!(
        event = "lock_incident",
        namespace = about.namespace.map(tracing::field::display),
        key = about.name.map(tracing::field::display),
        owner = about.owner.map(tracing::field::display),
        token = about.token.map(FencingToken::get),
        %invariant,
        detail = error.detail(),
        causes = (!causes.is_empty()).then_some(causes),
    );
}

/// Hot: debug.
pub(crate) fn session_opened(session: &Session) {
    tracing::debug!(event = "session_opened", owner = %session.owner);
}

/// Hot: debug. `closed` is false where the session had ended before.
pub(crate) fn session_closed(owner: Option<&OwnerId>, closed: bool) {
    tracing::debug!(event = "session_closed", owner = owner.map(tracing::field::display), closed);
}

/// A waiter polls from now on.
pub(crate) fn wait_fallback(key: &LockKey, owner: &OwnerId) {
    tracing::debug!(
        event = "wait_fallback",
        namespace = %key.namespace(),
        key = %key.name(),
        %owner,
    );
}
