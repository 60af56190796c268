//! Trap 31: what a database takes for the same, or cannot hold.

use dlock_conformance::kit::{key, ns, odd_names, private};
use dlock_domain::LockName;
use dlock_ports::ListRequest;

use crate::kit::Place;

/// Names in a database whose own order and sameness are a language's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_31_names_are_bytes_whatever_the_databases_language() {
    let mut place = Place::new().await;
    // A collation that takes letters that look alike for the same, as a database's default can be.
    let raw = place.raw().await;
    raw.run(
        "CREATE COLLATION naive (provider = icu, locale = 'und-u-ks-level1', deterministic = false); \
         CREATE TABLE naive_locks (name text COLLATE naive PRIMARY KEY)",
    )
    .await;
    raw.run("INSERT INTO naive_locks VALUES ('k')").await;
    for same in ["K", "\u{212a}"] {
        let insert = format!("INSERT INTO naive_locks VALUES ('{same}')");
        let refused = raw.client.batch_execute(&insert).await.unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "23505", "{same} is k");
    }
    let naive = raw
        .texts("SELECT x FROM unnest(ARRAY['b', 'B', 'a', '~']) x ORDER BY x COLLATE \"en-x-icu\"")
        .await;
    assert_eq!(naive, ["~", "a", "b", "B"], "a language's order");

    let columns = format!(
        "SELECT count(*) FROM information_schema.columns WHERE table_schema = '{}' \
         AND table_name IN ('dlock_locks', 'dlock_sessions') AND data_type = 'text' \
         AND collation_name IS DISTINCT FROM 'C'",
        place.schema
    );
    assert_eq!(place.eye.number(&columns).await, 0);
    names_are_bytes(&mut place).await;
}

/// All of C30's names are different locks and are listed in the order of their bytes, whole and by
/// prefix, in pages.
pub(crate) async fn names_are_bytes(place: &mut Place) {
    let a = place.caller().await;
    let mut tokens = std::collections::BTreeMap::new();
    for name in odd_names() {
        let token = a.take(&key(&name), &private("worker")).await.token;
        assert_eq!(tokens.insert(name, token), None);
    }
    for (name, token) in &tokens {
        assert_eq!(a.read(&key(name)).await.unwrap().token, *token, "{name}");
    }
    let directory = a.backend.directory.clone().unwrap();
    for prefix in ["", "a", "%", "_", "a%", "e", "\\"] {
        let (mut found, mut after): (Vec<String>, Option<LockName>) = (Vec::new(), None);
        loop {
            let request =
                ListRequest { namespace: ns("default"), prefix: prefix.into(), after, limit: 7 };
            let page = directory.list(request, a.by()).await.unwrap();
            found.extend(page.locks.iter().map(|lock| lock.key.name().as_str().to_owned()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let expected: Vec<_> =
            tokens.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
        assert_eq!(found, expected, "{prefix:?}");
    }
}

/// A NUL would be an error of the database's in the middle of a transaction. None gets there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trap_31_nul_never_reaches_the_database() {
    let mut place = Place::new().await;
    let raw = place.raw().await;
    let refused = raw.client.execute("SELECT $1::text", &[&"a\0b"]).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "22021");
    assert!(LockName::new("a\0b").is_err());
    assert!(dlock_domain::OwnerId::new("a\0b").is_err());
    assert!(dlock_domain::Namespace::new("a\0b").is_err());
    assert!(dlock_domain::Reason::new("a\0b").is_err());

    // A prefix is any text; no name begins like this one, and that is known without asking.
    let a = place.caller().await;
    a.take(&key("a"), &private("worker")).await;
    let directory = a.backend.directory.clone().unwrap();
    let request =
        ListRequest { namespace: ns("default"), prefix: "a\0".into(), after: None, limit: 10 };
    assert!(directory.list(request, a.by()).await.unwrap().locks.is_empty());
}
