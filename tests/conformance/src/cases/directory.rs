//! Listing: live locks, in byte order, in pages.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use dlock_domain::{LockName, Namespace};
use dlock_ports::{ListRequest, Page};

use crate::{
    Harness,
    kit::{
        Caller, a, b, key, key_in, long, ns, odd_names, of, outlive, owner, private, private_for,
    },
    notes::lacks,
};

/// A page, or the assertion that the store is expected not to list and does not: `None`.
async fn page<H: Harness>(
    h: &H,
    caller: &Caller,
    namespace: &str,
    prefix: &str,
    after: Option<&str>,
    limit: u16,
) -> Option<Page> {
    let directory = caller.backend.directory.as_ref();
    assert_eq!(directory.is_some(), h.expected().directory, "the expected capability");
    if directory.is_none() {
        lacks("directory");
    }
    let request = ListRequest {
        namespace: ns(namespace),
        prefix: prefix.into(),
        after: after.map(|name| LockName::new(name).expect("a valid name")),
        limit,
    };
    Some(directory?.list(request, caller.by()).await.expect("list answers"))
}

/// All names, page by page; `None` as above.
async fn names<H: Harness>(
    h: &H,
    caller: &Caller,
    namespace: &str,
    prefix: &str,
    limit: u16,
) -> Option<Vec<String>> {
    let mut seen = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = page(h, caller, namespace, prefix, after.as_deref(), limit).await?;
        assert!(page.locks.len() <= usize::from(limit.max(1)), "a page keeps its limit");
        assert!(page.next.is_none() || !page.locks.is_empty(), "every page gets on");
        for info in page.locks {
            assert_eq!(info.key.namespace().as_str(), namespace);
            seen.push(info.key.name().as_str().to_owned());
        }
        match page.next {
            Some(next) => after = Some(next.as_str().to_owned()),
            None => return Some(seen),
        }
    }
}

/// C30: odd names come back as they went in, in byte order, on pages of any size.
pub async fn c30_odd_names_are_listed_in_byte_order<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let mut expected = odd_names();
    for name in &expected {
        a.take(&key(name), &of(&session)).await;
    }
    expected.sort_by(|x, y| x.as_bytes().cmp(y.as_bytes()));
    for limit in [1, 2, 7, u16::MAX] {
        let Some(seen) = names(h, &b, Namespace::DEFAULT, "", limit).await else { return };
        assert_eq!(seen, expected, "in pages of {limit}");
    }
}

/// A listing shows of each lock what a read shows.
pub async fn a_listing_shows_what_a_read_shows<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let handle = a.take(&key("k"), &of(&session)).await;
    let Some(page) = page(h, &b, Namespace::DEFAULT, "", None, 10).await else { return };
    assert_eq!(page.locks.len(), 1);
    let info = &page.locks[0];
    assert_eq!((&info.key, &info.owner), (&handle.key, &owner("worker")));
    assert_eq!((info.session, info.token), (Some(session.id), handle.token));
    let read = b.read(&key("k")).await.expect("held");
    assert_eq!(info.acquired_at, read.acquired_at);
    assert_eq!(info.waiter_count, 0);
}

/// Only live locks: not the released, revoked or expired, nor those of a closed session.
pub async fn only_live_locks_are_listed<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let closed = a.open("worker", long()).await;
    a.take(&key("1 closed"), &of(&closed)).await;
    let expired = a.take(&key("2 expired"), &private_for("worker", h.short_ttl())).await;
    a.take(&key("3 live"), &private("worker")).await;
    let released = a.take(&key("4 released"), &private("worker")).await;
    a.take(&key("5 revoked"), &private("worker")).await;
    assert!(a.close(&closed.id).await);
    assert!(a.release(&released).await);
    a.revoke(&key("5 revoked"), None).await;
    outlive(h, expired.ttl).await;
    for limit in [1, 10] {
        let Some(seen) = names(h, &b, Namespace::DEFAULT, "", limit).await else { return };
        assert_eq!(seen, ["3 live"]);
    }
}

/// A namespace's listing has the namespace's locks, however alike the other's name.
pub async fn namespaces_are_listed_apart<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for namespace in ["n", "n.a", "n-a", "na", "m"] {
        a.take(&key_in(namespace, &format!("in {namespace}")), &private("worker")).await;
    }
    for namespace in ["n", "n.a", "n-a", "na", "m"] {
        let Some(seen) = names(h, &b, namespace, "", 2).await else { return };
        assert_eq!(seen, [format!("in {namespace}")]);
    }
    assert_eq!(names(h, &b, "empty", "", 2).await.expect("as before"), [""; 0]);
}

/// A prefix is bytes: no character in it means anything, none matches another's case or form.
pub async fn a_prefix_is_bytes<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    let all = [
        "%",
        "%a",
        "*",
        "*a",
        "A",
        "[a-z]",
        "_",
        "_a",
        "a",
        "a%",
        "a/b",
        "ab",
        "e\u{301}x",
        "k/1",
        "k/2",
        "ké",
        "\u{e9}x",
        "\u{10ffff}",
        "\u{10ffff}x",
    ];
    for name in all {
        a.take(&key(name), &of(&session)).await;
    }
    for prefix in [
        "%",
        "*",
        "A",
        "[",
        "[a-z]",
        "_",
        "a",
        "a%",
        "e",
        "\u{e9}",
        "k",
        "k/",
        "k/1",
        "k/11",
        "\u{10ffff}",
        "zzz",
        "",
    ] {
        let mut expected: Vec<_> = all.into_iter().filter(|n| n.starts_with(prefix)).collect();
        expected.sort_unstable();
        for limit in [1, 3, 100] {
            let Some(seen) = names(h, &b, Namespace::DEFAULT, prefix, limit).await else { return };
            assert_eq!(seen, expected, "prefix {prefix:?}, pages of {limit}");
        }
    }
}

/// `after` is a place between names, whether or not a lock of that name is or ever was there.
pub async fn after_is_a_place_between_names<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for name in ["b", "d", "f"] {
        a.take(&key(name), &private("worker")).await;
    }
    for (after, expected) in
        [("a", vec!["b", "d", "f"]), ("b", vec!["d", "f"]), ("c", vec!["d", "f"]), ("f", vec![])]
    {
        let Some(page) = page(h, &b, Namespace::DEFAULT, "", Some(after), 10).await else {
            return;
        };
        let seen: Vec<_> = page.locks.iter().map(|info| info.key.name().as_str()).collect();
        assert_eq!(seen, expected, "after {after}");
        assert_eq!(page.next, None);
    }
    let last = page(h, &b, Namespace::DEFAULT, "d", Some("b"), 10).await.expect("as before");
    assert_eq!(last.locks.len(), 1, "with a prefix, too");
}

/// Limit 0 counts as 1; a full last page is the last.
pub async fn limits_are_exact<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    for name in ["1", "2", "3"] {
        a.take(&key(name), &private("worker")).await;
    }
    for (limit, count, more) in [(0, 1, true), (1, 1, true), (2, 2, true), (3, 3, false)] {
        let Some(page) = page(h, &b, Namespace::DEFAULT, "", None, limit).await else { return };
        assert_eq!((page.locks.len(), page.next.is_some()), (count, more), "limit {limit}");
    }
}

/// Longest names are listed and paged like any other.
pub async fn the_longest_names_are_paged<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let mut expected: Vec<String> =
        (0..4).map(|n| format!("{}{n}", "x".repeat(LockName::MAX_BYTES - 1))).collect();
    expected.push("\u{1f980}".repeat(LockName::MAX_BYTES / 4));
    for name in &expected {
        a.take(&key(name), &private("worker")).await;
    }
    let Some(seen) = names(h, &b, Namespace::DEFAULT, "", 1).await else { return };
    assert_eq!(seen, expected);
}

/// What is held throughout is listed exactly once, whatever comes and goes meanwhile.
pub async fn what_is_held_throughout_is_listed_once<H: Harness>(h: &H) {
    let (a, b) = (a(h), b(h));
    let session = a.open("worker", long()).await;
    for n in 0..20 {
        a.take(&key(&format!("{n:02} held")), &of(&session)).await;
    }
    let over = Arc::new(AtomicBool::new(false));
    let churn = {
        let (b, over) = (b.clone(), Arc::clone(&over));
        tokio::spawn(async move {
            let session = b.open("churn", long()).await;
            let mut n = 0_u32;
            while !over.load(Ordering::Relaxed) {
                let handle = b.take(&key(&format!("{:02} churn", n % 20)), &of(&session)).await;
                assert!(b.release(&handle).await);
                n += 1;
            }
        })
    };
    let expected: Vec<_> = (0..20).map(|n| format!("{n:02} held")).collect();
    for limit in [1, 3, 7, 100] {
        let Some(mut seen) = names(h, &a, Namespace::DEFAULT, "", limit).await else { break };
        assert!(seen.is_sorted(), "in byte order");
        seen.retain(|name| name.ends_with("held"));
        assert_eq!(seen, expected, "in pages of {limit}");
    }
    over.store(true, Ordering::Relaxed);
    churn.await.expect("the churn went well");
}
