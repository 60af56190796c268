//! What differs between stores within the contract, measured, and held to the
//! [table](crate::divergence) if the store is one of the table's.

use core::time::Duration;

use dlock_domain::Deadline;

use crate::{
    Harness,
    divergence::{self, Facts},
    kit::{Caller, a, b, key, long, millis, private, until},
    notes::{lacks, shows},
};

/// What the table says of the store; nothing of a store that others bring.
fn facts<H: Harness>(h: &H) -> Option<Facts> {
    let id = h.expected().backend_id;
    divergence::STORES.iter().find(|store| store.id == id).map(|store| store.facts)
}

/// The effective lifetime is never shorter than the one asked for, and is what the table says; a
/// session, a grant with a session of its own and a renewal agree about it.
pub async fn a_lifetime_is_rounded_up_as_the_table_says<H: Harness>(h: &H) {
    let a = a(h);
    let asked = millis(divergence::ASKED_MS);
    let session = a.open("worker", asked).await;
    let handle = a.take(&key("k"), &crate::kit::private_for("worker", asked)).await;
    assert!(session.ttl >= asked, "a store rounds a lifetime up, never down");
    assert!(session.ttl.as_duration() < asked.as_duration() + Duration::from_secs(1));
    assert_eq!(handle.ttl, session.ttl);
    assert_eq!(a.extend(&handle).await.map(|extended| extended.ttl), Some(session.ttl));
    let effective = session.ttl.as_duration().as_millis();
    shows(&format!("lifetime, of {} ms asked", divergence::ASKED_MS), format!("{effective} ms"));
    if let Some(facts) = facts(h) {
        assert_eq!(effective, u128::from(facts.effective_ms));
    }
}

/// Opens a session, and releases what is held: two writes that grant nothing.
async fn write(a: &Caller, held: &dlock_domain::LockHandle) {
    a.open("somebody", long()).await;
    assert!(a.release(held).await);
}

/// Tokens of two grants in a row, of locks that have nothing to do with each other: numbers are
/// drawn by grants alone, or by whatever is written.
pub async fn tokens_step_as_the_table_says<H: Harness>(h: &H) {
    let a = a(h);
    let first = a.take(&key("k1"), &private("worker")).await;
    write(&a, &first).await;
    let second = a.take(&key("k2"), &private("worker")).await;
    assert!(second.token > first.token, "one source for all locks");
    let by_grants = second.token.get() - first.token.get() == 1;
    let drawn = if by_grants { "grants" } else { "every write" };
    shows("token numbers are used up by", drawn);
    if let Some(facts) = facts(h) {
        assert_eq!(by_grants, facts.only_grants_use_numbers);
    }
}

/// Who waits is counted where it waits; whether the store's other view knows of it is the table's.
pub async fn a_waiter_is_counted_where_it_waits<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let property = "a waiter here is counted there";
    let (Some(here), Some(there)) = (a.backend.waiter.clone(), b.backend.waiter.clone()) else {
        assert!(!h.expected().waiter, "the expected capability");
        lacks("waiter");
        shows(property, "no: only by the service");
        return;
    };
    let handle = b.take(&key("k"), &private("holder")).await;
    let since = a.meet(&key("k"), &private("waiter")).await;
    let by = Deadline::at(a.now().after(Duration::from_secs(3_600)));
    let waiting = {
        let here = here.clone();
        tokio::spawn(async move { here.await_release(&key("k"), &since, by).await })
    };
    until("one waits", || here.waiters(&key("k")) == 1).await;
    let counted = there.waiters(&key("k")) == 1;
    for (caller, count) in [(&a, 1), (&b, u32::from(counted))] {
        assert_eq!(caller.read(&key("k")).await.map(|info| info.waiter_count), Some(count));
    }
    waiting.abort();
    shows(property, if counted { "yes: it is one process" } else { "no" });
    if let Some(facts) = facts(h) {
        assert_eq!(counted, facts.waiters_are_counted_elsewhere);
    }
    assert!(a.release(&handle).await);
}

/// What the other cases hold the store to.
pub async fn what_the_suite_reckons_with<H: Harness>(h: &H) {
    let expected = h.expected();
    shows("late expiry, at most", format!("{} ms", h.expiry_slack().as_millis()));
    shows("ended leases are removed by", if expected.reaps { "reaping" } else { "the store" });
    shows("attempts that a session settles, at most", expected.max_settled);
    if let Some(facts) = facts(h) {
        assert!(h.expiry_slack() <= Duration::from_millis(facts.late_ms));
    }
}
