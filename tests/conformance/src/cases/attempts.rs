//! Attempts: the same call again finds its own grant, and only its own.

use dlock_domain::ErrorKind;
use dlock_ports::{Attempt, Holder, Intent};

use crate::{
    Harness,
    kit::{
        a, assert_invalid, assert_refused, attempt, b, granted, held, key, long, millis, of, owner,
        private, private_for,
    },
};

/// C20: the same attempt again gets the same grant, at once, through whomever; one holder.
pub async fn c20_the_same_attempt_finds_its_own_grant<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        let first = a.take_as(&key("k"), &holder, named).await;
        for caller in [&a, &b, &a] {
            let again = caller.take_as(&key("k"), &holder, named).await;
            assert_eq!(
                (&again.key, &again.owner, again.session, again.token, again.ttl),
                (&first.key, &first.owner, first.session, first.token, first.ttl)
            );
            b.meet(&key("k"), &holder).await;
        }
        let (_, grants) = b.look(&first.session).await.expect("live");
        assert_eq!(grants.len(), 1);
        assert!(b.release(&first).await, "one release ends it");
        assert_eq!(a.read(&key("k")).await, None);
    }
}

/// INV-03: a repeat believes in the lease that the first call set, and not for a moment longer.
pub async fn inv03_a_repeat_lengthens_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", h.short_ttl()).await;
    for holder in [of(&session), private_for("worker", h.short_ttl())] {
        let named = attempt();
        let first = a.take_as(&key("k"), &holder, named).await;
        let after = a.now();
        h.pass(first.ttl.as_duration() / 4).await;
        for caller in [&a, &b] {
            let again = caller.take_as(&key("k"), &holder, named).await;
            let bound = after.holder_deadline(h.short_ttl(), first.ttl);
            assert!(again.client_deadline <= bound, "INV-03: a repeat counts what remains");
            assert!(again.client_deadline > caller.now(), "what remains is worth something");
        }
        assert!(b.release(&first).await);
    }
}

/// An attempt is one caller's: with another session, owner or lifetime it is refused, and the
/// grant stays as it is.
pub async fn an_attempt_of_somebody_else_is_refused<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let mine = a.open("worker", long()).await;
    let other = a.open("worker", long()).await;
    let longer = millis(long().as_millis() * 2);
    let private_other = Holder::Private { owner: owner("other"), ttl: long() };
    let private_longer = Holder::Private { owner: owner("worker"), ttl: longer };
    let misuses = [
        (of(&mine), vec![of(&other), private("worker")]),
        (private("worker"), vec![private_other, private_longer, of(&mine)]),
    ];
    for (holder, others) in misuses {
        let named = attempt();
        let handle = a.take_as(&key("k"), &holder, named).await;
        for wrong in &others {
            for caller in [&a, &b] {
                for intent in [Intent::Acquire, Intent::Recover] {
                    let answer = caller.shot(&key("k"), wrong, named, intent).await;
                    assert_invalid(answer, "attempt_id");
                }
            }
        }
        assert_eq!(b.extend(&handle).await.expect("undisturbed").token, handle.token);
        assert!(a.release(&handle).await);
    }
}

/// Attempts are compared within their key: on another key the same id is another attempt.
pub async fn attempts_are_compared_within_their_key<H: Harness>(h: &H) {
    let a = a(h);
    let session = a.open("worker", long()).await;
    let named = attempt();
    let first = a.take_as(&key("k1"), &of(&session), named).await;
    let second = a.take_as(&key("k2"), &of(&session), named).await;
    assert_ne!(first.token, second.token);
    assert!(a.release(&first).await);
    assert_eq!(a.take_as(&key("k2"), &of(&session), named).await.token, second.token);
}

/// Recovering finds the attempt's own grant and never makes one.
pub async fn recovering_never_creates_a_grant<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        held(a.shot(&key("k"), &holder, named, Intent::Recover).await);
        assert_eq!(b.read(&key("k")).await, None, "a free lock stays free");

        let somebody = b.take(&key("k"), &private("somebody")).await;
        held(a.shot(&key("k"), &holder, named, Intent::Recover).await);
        assert!(b.release(&somebody).await);

        let handle = a.take_as(&key("k"), &holder, named).await;
        for caller in [&a, &b] {
            let found = granted(caller.shot(&key("k"), &holder, named, Intent::Recover).await);
            assert_eq!((found.token, found.session), (handle.token, handle.session));
        }
        assert!(b.release(&handle).await);
        held(b.shot(&key("k"), &holder, named, Intent::Recover).await);
        assert_eq!(a.read(&key("k")).await, None, "an ended grant stays ended");
    }
}

/// After its grant has ended, an attempt that nobody settled is a new one: with a new token.
pub async fn an_unsettled_attempt_is_new_after_its_release<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for holder in [of(&session), private("worker")] {
        let named = attempt();
        let first = a.take_as(&key("k"), &holder, named).await;
        assert!(a.release(&first).await);
        let second = b.take_as(&key("k"), &holder, named).await;
        assert!(second.token > first.token);
        b.revoke(&key("k"), None).await;
        let third = a.take_as(&key("k"), &holder, named).await;
        assert!(third.token > second.token);
        assert!(a.release(&third).await);
    }
}

/// A repeat whose lock went to somebody else meets that holder.
pub async fn a_repeat_after_the_lock_changed_hands_meets_the_new_holder<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let named = attempt();
    let first = a.take_as(&key("k"), &of(&session), named).await;
    assert!(a.release(&first).await);
    let successor = b.take(&key("k"), &private("successor")).await;
    held(a.insert(&key("k"), &of(&session), named).await);
    assert_eq!(b.read(&key("k")).await.map(|info| info.token), Some(successor.token));
}

/// A repeat by a session that is gone finds no session, and no lock.
pub async fn a_repeat_by_a_closed_session_is_granted_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let named = attempt();
    a.take_as(&key("k"), &of(&session), named).await;
    assert!(b.close(&session.id).await);
    let answer = a.insert(&key("k"), &of(&session), named).await;
    assert_refused(answer, ErrorKind::SessionExpired);
    assert_eq!(b.read(&key("k")).await, None);
}

/// A repeat after expiry is no revival: a new grant for a private holder, none for a session.
pub async fn a_repeat_after_expiry_revives_nothing<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", h.short_ttl()).await;
    let holder = private_for("worker", h.short_ttl());
    let (of_session, of_private) = (attempt(), attempt());
    a.take_as(&key("k1"), &of(&session), of_session).await;
    let first = a.take_as(&key("k2"), &holder, of_private).await;
    crate::kit::outlive(h, first.ttl).await;
    let answer = b.insert(&key("k1"), &of(&session), of_session).await;
    assert_refused(answer, ErrorKind::SessionExpired);
    match b.insert(&key("k2"), &holder, of_private).await {
        Ok(Attempt::Granted(second)) => {
            assert!(second.token > first.token);
            assert_ne!(second.session, first.session, "ids are never used again");
        }
        other => panic!("expected a new grant, got {other:?}"),
    }
    assert_eq!(a.extend(&first).await, None);
}
