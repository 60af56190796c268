//! dlock over HTTP: JSON routes over the [`LockService`](dlock_ports::LockService) port (C3).
//!
//! | call | body → answer | errors of its own |
//! | --- | --- | --- |
//! | `POST /v1/sessions` | `{owner, ttl_ms}` → 201 `{session_id, owner, ttl_ms, valid_ms}` | 429 |
//! | `POST /v1/sessions/keepalive` | `{session_id, held?: [{name, namespace?, fencing_token}]}` → 200 `{session_id, ttl_ms, valid_ms, lost}` | 410 |
//! | `POST /v1/sessions/look` | `{session_id}` → 200 `{session_id, owner, ttl_ms, valid_ms, grants}` | 410 |
//! | `POST /v1/sessions/close` | `{session_id}` → 200 `{closed}` | |
//! | `POST /v1/locks/acquire` | `{name, namespace?, session_id}` or `{name, namespace?, owner, ttl_ms}`; `max_wait_ms?`, `attempt_id?` → 200 `{name, namespace, owner, session_id, fencing_token, ttl_ms, valid_ms}` | 409 `not-granted` with `holder`, 410, 429 |
//! | `POST /v1/locks/renew` | `{name, namespace?, fencing_token, session_id}` → 200 as acquire | 403, 410 |
//! | `POST /v1/locks/release` | `{name, namespace?, session_id, fencing_token}`, or `attempt_id` for the token → 200 `{released, current}` | 403, 429 |
//! | `GET /v1/locks/inspect?name=&namespace=` | 200 `{name, namespace, owner, fencing_token, held_for_ms, expires_in_ms, waiter_count}` | 404 `not-held` |
//! | `GET /v1/locks?namespace=&prefix=&limit=&cursor=` | 200 `{locks, next_cursor}` | 501 |
//! | `POST /v1/locks/revoke` | `{name, namespace?, actor, reason, expected_token?}` → 200 `{revoked, previous_token, new_token_floor}` | 409 `token-mismatch` with `current_token` |
//! | `POST /v1/floor` | `{namespace?, at_least}` → 200 `{namespace, token_floor, grants_ended}` | 501 |
//! | `GET /livez` | 200 `{"live": true}` | |
//! | `GET /readyz` | 200 `{"ready": true}` | 503 |
//! | `GET /metrics` | 200, Prometheus' text format | 404 |
//! | `GET /openapi.json` | 200, [this table for machines](openapi) | |
//! | `GET /` | 200, a page for people | |
//!
//! `/docs/` is Swagger UI, out of this binary and under a policy that lets nothing in from
//! elsewhere. `HEAD` works wherever `GET` does; `Accept` has no influence.
//!
//! # Reading
//! - Bodies are `application/json`, UTF-8, at most [`HttpConfig::max_body`]; what is not JSON is
//!   400, JSON of the wrong shape is 422 and names the field. Unknown and duplicate fields are
//!   refused; `null` means absent. Tokens and times are JSON integers and nothing else (C32, C36).
//! - Query strings are decoded once and strictly: `+` is a blank (as forms and `curl -G
//!   --data-urlencode` send it; a plus sign is `%2B`), a bad escape or bytes that are not UTF-8
//!   are 400, unknown and repeated parameters are 422 (trap 43, C30, C31).
//! - `valid_ms` counts from the moment at which the request was received, so a client that counts
//!   it from the moment at which it sent is sound, also after a long wait (INV-03, trap 34).
//!
//! # Answering
//! - Every error is an RFC 9457 problem: `type` = `urn:dlock:problem:<kind>`, `title`, `status`,
//!   `detail`, `retryable`, and where they apply `applied`, `field`, `limit`, `invariant`,
//!   `holder`, `current_token`. Unknown routes, wrong methods and panics are no exception. What cannot be read as
//!   HTTP at all is answered by the HTTP library: an empty 400 or 431, or a closed connection. A
//!   request's head may have 16 KiB and 100 headers.
//! - Requests carry and get an `x-request-id`; a W3C `traceparent` puts its trace's id into the
//!   request's span (C4).
//! - A session's id is a secret: it is in bodies, never in a URL, a log line or a span.
//!
//! # Hanging up
//! A client that hangs up has its handler dropped in the middle (trap 41). That is safe:
//! `LockService` promises that a dropped future gives up the answer and not the operation, and for
//! an acquire the drop is how the service learns that nobody waits any more (INV-09).
//!
//! # Map
//! | file | what it holds |
//! | --- | --- |
//! | `config`, `ready` | what the application sets, and the probe that it brings |
//! | `router`, `app` | the routes, and what handlers share |
//! | `serve`, `stream` | the accept loop: bounded connections, slow clients, draining |
//! | `sessions`, `locks`, `floor`, `health`, `metrics` | handlers, one file a resource |
//! | `page`, `docs`, `secure` | what browsers are shown, and what they are forbidden |
//! | `spec` | the API's description, with what every call can answer |
//! | `json`, `query`, `fields`, `cursor`, `depth` | strict reading, into types that cannot be invalid |
//! | `problem`, `reply`, `info` | answers |
//! | [`wire`] | their bodies as text, for whoever else prints what this server would answer |
//! | `envelope`, `received`, `request_id`, `trace`, `host`, `panic` | what happens around every handler |
//!
//! What is deliberately absent: TLS, access rules, compression, and any knowledge of a store.

mod app;
mod config;
mod cursor;
mod depth;
mod docs;
mod envelope;
mod fields;
mod floor;
mod health;
mod host;
mod info;
mod json;
mod locks;
mod metrics;
mod page;
mod panic;
mod problem;
mod query;
mod ready;
mod received;
mod reply;
mod request_id;
mod router;
mod secure;
mod serve;
mod sessions;
mod spec;
mod stream;
mod trace;
pub mod wire;

pub use config::{HostPolicy, HttpConfig, Metrics};
pub use ready::ReadinessProbe;
pub use router::router;
pub use serve::serve;
pub use spec::openapi;
