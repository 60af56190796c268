//! `GET /`: what this is, whether it works, and what is held, for people with a browser.
//!
//! Made here and complete: no script, nothing from elsewhere.

mod html;

use core::time::Duration;

use axum::{
    Router, body::Body, extract::State, http::HeaderValue, response::Response, routing::get,
};
use dlock_domain::{LockInfo, Result, WallTime};
use dlock_ports::{ListRequest, Page};

use self::html::Html;
use crate::{HttpConfig, app::App, health, secure};

/// How many locks are shown.
const SHOWN: u16 = 100;

/// The style sheet, which the page's strict policy wants in a file of its own.
pub(crate) fn assets() -> Router<App> {
    Router::new().route("/style.css", get(style))
}

async fn style() -> Response {
    let media = HeaderValue::from_static("text/css; charset=utf-8");
    secure::answer(media, secure::PLAIN, Body::from(include_str!("style.css")))
}

/// Always 200: that the store doesn't answer is what the page is there to tell.
#[utoipa::path(
    get,
    path = "/",
    tag = "server",
    operation_id = "page",
    summary = "A page for people",
    description = "What this is, whether it is ready, and the first 100 live locks of the default \
        namespace.",
    responses((status = 200, description = "The page", content_type = "text/html; charset=utf-8",
        body = String)),
)]
pub(crate) async fn page(State(app): State<App>) -> Response {
    let request = ListRequest {
        namespace: app.config().namespace.clone(),
        prefix: "".into(),
        after: None,
        limit: SHOWN,
    };
    let (ready, locks) = tokio::join!(health::check(&app), app.service().list(request));
    let text = document(app.config(), &ready, &locks, app.clock().wall());
    let media = HeaderValue::from_static("text/html; charset=utf-8");
    secure::answer(media, secure::PLAIN, Body::from(text))
}

fn document(
    config: &HttpConfig,
    ready: &Result<()>,
    locks: &Result<Page>,
    now: WallTime,
) -> String {
    let mut html = Html::default();
    html.markup(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>dlock</title>\
         <link rel=\"stylesheet\" href=\"/style.css\"></head><body>\n<h1>dlock</h1>\n\
         <p>A server of distributed locks: a lock is held under a lease, and every grant has a \
         fencing token that only grows. \
         <a href=\"/docs/\">How to call it</a>, also <a href=\"/openapi.json\">for machines</a>.\
         </p>\n<dl><dt>Version</dt><dd>",
    );
    html.text(env!("CARGO_PKG_VERSION")).markup("</dd>\n<dt>Store</dt><dd>").text(config.backend);
    html.markup("</dd>\n<dt>Ready</dt><dd>");
    match ready {
        Ok(()) => html.markup("yes"),
        Err(error) => html.markup("no: ").text(error.detail()),
    };
    html.markup("</dd></dl>\n<h2>Live locks in namespace ").text(config.namespace.as_str());
    html.markup("</h2>\n");
    match locks {
        Ok(page) if page.locks.is_empty() => {
            html.markup("<p>Nothing is held.</p>\n");
        }
        Ok(page) => table(&mut html, page, now),
        Err(error) => {
            html.markup("<p>They cannot be listed: ").text(error.detail()).markup("</p>\n");
        }
    }
    html.markup("</body></html>\n");
    html.finish()
}

fn table(html: &mut Html, page: &Page, now: WallTime) {
    html.markup(
        "<div class=\"wide\"><table><thead><tr><th>Name</th><th>Owner</th><th>Token</th><th>Held for</th>\
         <th>Expires in</th><th>Waiters</th></tr></thead><tbody>\n",
    );
    for info in &page.locks {
        row(html, info, now);
    }
    html.markup("</tbody></table></div>\n");
    if page.next.is_some() {
        html.markup("<p>There are more; <code>GET /v1/locks</code> lists them all.</p>\n");
    }
}

fn row(html: &mut Html, info: &LockInfo, now: WallTime) {
    html.markup("<tr>")
        .cell(info.key.name().as_str())
        .cell(info.owner.as_str())
        .cell(&info.token.to_string())
        .cell(&roughly(now.since(info.acquired_at)))
        .cell(&roughly(info.server_expiry.since(now)))
        .cell(&info.waiter_count.to_string())
        .markup("</tr>\n");
}

/// A duration for people, rounded down: `59 s`, `2 min 5 s`, `3 h 0 min`, `12 d 4 h`.
fn roughly(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (125, "2 min 5 s"),
            (3_599, "59 min 59 s"),
            (3 * 3_600, "3 h 0 min"),
            (12 * 86_400 + 4 * 3_600 + 59, "12 d 4 h"),
        ] {
            assert_eq!(roughly(Duration::from_secs(seconds)), text);
        }
    }
}
