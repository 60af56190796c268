//! The page at `/`.

use std::sync::Arc;

use axum::Router;
use dlock_domain::{ErrorKind, LockError, LockInfo, LockName, Result};
use dlock_http::HttpConfig;
use dlock_ports::Page;

use crate::support::{
    Chance, Loaded, MockService, Ready, SECRET, TestClock, browse, info, key, owner,
};

fn router(ready: Ready, locks: impl Fn() -> Result<Page> + Send + 'static) -> Router {
    let mut service = MockService::new();
    service
        .expect_list()
        .withf(|request| {
            request.namespace.as_str() == "default"
                && request.prefix.is_empty()
                && request.after.is_none()
                && request.limit == 100
        })
        .returning(move |_| locks());
    let mut config = HttpConfig::new(Arc::new(ready), Arc::new(Chance::default()));
    config.backend = "a<b";
    dlock_http::router(Arc::new(service), Arc::new(TestClock::default()), config)
}

async fn page(ready: Ready, locks: impl Fn() -> Result<Page> + Send + 'static) -> Loaded {
    let answer = browse(&router(ready, locks), "/").await;
    assert_eq!(answer.status, 200);
    answer
}

fn held(name: &str, by: &str) -> LockInfo {
    LockInfo { owner: owner(by), ..info(key("default", name)) }
}

fn empty() -> Result<Page> {
    Ok(Page { locks: vec![], next: None })
}

#[tokio::test]
async fn it_says_what_this_is_and_what_is_held() {
    let answer = page(Ready::Yes, || {
        Ok(Page { locks: vec![held("nightly", "me"), held("weekly", "you")], next: None })
    })
    .await;
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    for expected in [
        "<h1>dlock</h1>",
        env!("CARGO_PKG_VERSION"),
        "<dd>a&lt;b</dd>",
        "<dt>Ready</dt><dd>yes</dd>",
        "href=\"/docs/\"",
        "href=\"/openapi.json\"",
        "<tr><td><bdi>nightly</bdi></td><td><bdi>me</bdi></td><td><bdi>9</bdi></td>\
         <td><bdi>2 s</bdi></td><td><bdi>28 s</bdi></td><td><bdi>3</bdi></td></tr>",
        "<td><bdi>weekly</bdi></td>",
    ] {
        assert!(answer.text.contains(expected), "{expected} is not in {}", answer.text);
    }
    assert!(!answer.text.contains(SECRET));
    assert!(!answer.text.contains("There are more"));
}

#[tokio::test]
async fn c33_names_and_owners_are_text() {
    let name = "</td><script>alert('n')</script>\"&amp;";
    let by = "\"><img src=x onerror='alert(1)'>";
    let answer = page(Ready::Yes, || Ok(Page { locks: vec![held(name, by)], next: None })).await;
    for raw in ["<script", "<img", "alert('", "onerror='"] {
        assert!(!answer.text.contains(raw), "{raw} is in {}", answer.text);
    }
    let escaped = "<td><bdi>&lt;/td&gt;&lt;script&gt;alert(&#39;n&#39;)&lt;/script&gt;&quot;\
        &amp;amp;</bdi></td><td><bdi>&quot;&gt;&lt;img src=x onerror=&#39;alert(1)&#39;&gt;</bdi>";
    assert!(answer.text.contains(escaped), "{}", answer.text);
}

#[tokio::test]
async fn it_says_what_does_not_work() {
    let cannot = || Err(LockError::new(ErrorKind::Unsupported, "this <store> cannot list"));
    let answer = page(Ready::No(LockError::contention("the <store> is away")), cannot).await;
    for expected in [
        "<dt>Ready</dt><dd>no: the &lt;store&gt; is away</dd>",
        "<p>They cannot be listed: this &lt;store&gt; cannot list</p>",
    ] {
        assert!(answer.text.contains(expected), "{expected} is not in {}", answer.text);
    }
    let answer = page(Ready::Yes, empty).await;
    assert!(answer.text.contains("<p>Nothing is held.</p>"), "{}", answer.text);
}

#[tokio::test]
async fn it_says_when_there_are_more() {
    let more = || {
        let next = Some(LockName::new("a").unwrap());
        Ok(Page { locks: vec![held("a", "me")], next })
    };
    assert!(page(Ready::Yes, more).await.text.contains("There are more"));
}

#[tokio::test]
async fn nothing_comes_from_elsewhere_and_browsers_are_told_so() {
    let router = router(Ready::Yes, empty);
    for path in ["/", "/style.css"] {
        let answer = browse(&router, path).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.headers["content-security-policy"],
            "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
             form-action 'none'"
        );
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        for elsewhere in ["://", "\"//", "url(", "@import", "<script", "style=\""] {
            assert!(!answer.text.contains(elsewhere), "{elsewhere} is in {path}");
        }
    }
    assert_eq!(
        browse(&router, "/style.css").await.headers["content-type"],
        "text/css; charset=utf-8"
    );
}
