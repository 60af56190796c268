//! The API's documentation for people.

use axum::http::Method;

use crate::support::{browse, get, load, post, request, unasked};

/// What follows each occurrence of `opening`, up to `closing`.
fn all<'a>(text: &'a str, opening: &str, closing: char) -> Vec<&'a str> {
    text.split(opening).skip(1).map(|rest| rest.split(closing).next().unwrap()).collect()
}

#[tokio::test]
async fn everything_that_the_page_loads_is_here() {
    let router = unasked();
    let index = browse(&router, "/docs/").await;
    assert_eq!(index.status, 200);
    assert_eq!(index.headers["content-type"], "text/html");
    let mut linked = all(&index.text, "src=\"", '"');
    linked.extend(all(&index.text, "href=\"", '"'));
    assert_eq!(linked.len(), 7, "{linked:?}");
    for file in linked {
        let name = file.strip_prefix("./").unwrap_or(file);
        assert!(!name.contains(['/', ':']), "{file} is elsewhere");
        let answer = browse(&router, &format!("/docs/{name}")).await;
        assert_eq!(answer.status, 200, "{file}");
        assert!(!answer.text.is_empty());
        let media = answer.headers["content-type"].to_str().unwrap().to_owned();
        let expected = match name.rsplit_once('.').unwrap().1 {
            "css" => "text/css",
            "js" => "text/javascript",
            _ => "image/png",
        };
        assert!(media.starts_with(expected), "{file}: {media}");
    }
}

#[tokio::test]
async fn nothing_is_fetched_from_elsewhere() {
    let router = unasked();
    let start = browse(&router, "/docs/swagger-initializer.js").await.text;
    for text in [&start, &browse(&router, "/docs/").await.text] {
        for elsewhere in ["http:", "https:", "\"//", "'//"] {
            assert!(!text.contains(elsewhere), "{elsewhere} is in {text}");
        }
    }
    for expected in
        [r#""url": "/openapi.json""#, r#""validatorUrl": "none""#, r#""layout": "BaseLayout""#]
    {
        assert!(start.contains(expected), "{expected} is not in {start}");
    }
    assert!(!start.contains(r#""queryConfigEnabled": true"#));
    for sheet in ["/docs/swagger-ui.css", "/docs/index.css"] {
        let text = browse(&router, sheet).await.text;
        assert!(!text.contains("@import"), "{sheet}");
        for address in all(&text, "url(", ')') {
            assert!(address.trim_start_matches(['"', '\'']).starts_with("data:"), "{address}");
        }
    }
}

#[tokio::test]
async fn browsers_are_told_so() {
    let router = unasked();
    for path in ["/docs/", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"] {
        let answer = browse(&router, path).await;
        assert_eq!(
            answer.headers["content-security-policy"],
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
        );
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    }
}

#[tokio::test]
async fn the_way_there_and_what_is_not_there() {
    let router = unasked();
    let answer = load(&router, request(Method::GET, "/docs", "")).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (308, ""));
    assert_eq!(answer.headers["location"], "/docs/");
    for absent in ["index.html", "oauth2-redirect.html", "%2e%2e/openapi.json", "..", "x"] {
        let path = format!("/docs/{absent}");
        get(&router, &path).await.refuses(404, "not-found", None);
    }
    post(&router, "/docs/", "{}").await.refuses(405, "method-not-allowed", None);
}
