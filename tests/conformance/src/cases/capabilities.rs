//! What the backend offers is what its store is expected to offer, whoever looks.

use crate::{
    Harness,
    kit::{a, b},
    notes::{lacks, shows},
};

/// The name in metrics and logs is the expected one, through both.
pub async fn the_store_names_itself<H: Harness>(h: &H) {
    for caller in [a(h), b(h)] {
        assert_eq!(caller.backend.locks.backend_id(), h.expected().backend_id);
    }
}

/// A capability is there or it is not, for good and for everybody.
pub async fn capabilities_are_exactly_the_expected_ones<H: Harness>(h: &H) {
    let expected = h.expected();
    let offers = [
        ("waiter", expected.waiter),
        ("directory", expected.directory),
        ("floors", expected.floors),
        ("reaping", expected.reaps),
        ("limits", expected.limits),
    ];
    for (name, offered) in offers {
        shows(&format!("offers {name}"), if offered { "yes" } else { "no" });
        if !offered {
            lacks(name);
        }
    }
    for caller in [a(h), b(h)] {
        assert_eq!(caller.backend.waiter.is_some(), expected.waiter, "waiter");
        assert_eq!(caller.backend.directory.is_some(), expected.directory, "directory");
        assert_eq!(caller.backend.floors.is_some(), expected.floors, "floors");
    }
}

/// Both see one store: what one grants the other meets, both ways.
pub async fn two_backends_are_one_store<H: Harness>(h: &H) {
    use crate::kit::{key, private};
    let (a, b) = (a(h), b(h));
    let first = a.take(&key("k"), &private("a")).await;
    b.meet(&key("k"), &private("b")).await;
    assert!(b.release(&first).await);
    let second = b.take(&key("k"), &private("b")).await;
    a.meet(&key("k"), &private("a")).await;
    assert!(second.token > first.token);
}
