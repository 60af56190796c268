//! `GET /v1/locks`: live locks, page by page.

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use dlock_domain::{LockError, LockName, WallTime};
use dlock_ports::{ListRequest, Page};
use serde::Serialize;
use utoipa::{
    IntoParams, ToSchema,
    openapi::{
        ObjectBuilder, Required, Type,
        path::{Parameter, ParameterIn},
    },
};

use crate::{
    app::App,
    cursor,
    fields::{self, Text},
    info::InfoBody,
    problem::Problem,
    query::Params,
    reply,
    spec::{
        fields as wire,
        shapes::{query, query_of},
    },
};

/// How many locks a page has, unless the client says.
const DEFAULT_LIMIT: u16 = 100;
/// How many it has at most, so that an answer is bounded.
const MAX_LIMIT: u16 = 1_000;

#[derive(Serialize, ToSchema)]
#[schema(as = LockPage)]
pub(crate) struct PageBody {
    /// In byte order of their names.
    #[schema(max_items = 1000)]
    locks: Vec<InfoBody>,
    /// Where the next page starts; `null` at the end.
    #[schema(required)]
    next_cursor: Option<String>,
}

impl PageBody {
    /// What the locks of a page look like at this time.
    pub(crate) fn new(page: &Page, now: WallTime) -> Self {
        Self {
            locks: page.locks.iter().map(|info| InfoBody::new(info, now)).collect(),
            next_cursor: page.next.as_ref().map(cursor::write),
        }
    }
}

/// The parameters, in the API's description.
pub(crate) struct ListParams;

impl IntoParams for ListParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let prefix = text().max_length(Some(LockName::MAX_BYTES)).pattern(Some(wire::NO_CONTROLS));
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(MAX_LIMIT))
            .default(Some(DEFAULT_LIMIT.into()));
        let cursor = text()
            .min_length(Some(2))
            .max_length(Some(cursor::MAX_LENGTH))
            .pattern(Some(cursor::PATTERN));
        vec![
            query_of::<wire::Namespace>(
                "namespace",
                Required::False,
                "In this namespace; without it, the server's default one",
            ),
            query(
                "prefix",
                Required::False,
                "Only locks whose names begin with these bytes, at most 512",
                prefix,
            ),
            query("limit", Required::False, "At most so many locks", limit),
            query(
                "cursor",
                Required::False,
                "Where to go on: the `next_cursor` of the page before, unchanged",
                cursor,
            ),
        ]
    }
}

/// Live locks in byte order. Each page is consistent in itself; a lock held throughout the whole
/// listing is listed exactly once. 501 where the store cannot.
#[utoipa::path(
    get,
    path = "/v1/locks",
    tag = "locks",
    operation_id = "list",
    summary = "List live locks",
    description = "In byte order of their names, page by page. Each page is consistent in itself; \
        a lock held throughout the whole listing is listed exactly once, others may or may not be.",
    params(ListParams),
    responses((status = 200, description = "A page of locks", body = PageBody)),
)]
pub(crate) async fn list(
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    read(&app, query.as_deref()).await.map_err(Problem::of_read)
}

async fn read(app: &App, query: Option<&str>) -> Result<Response, Problem> {
    let mut params = Params::parse(query)?;
    let namespace = params.take("namespace").map(Text);
    let (prefix, limit, cursor) =
        (params.take("prefix"), params.take("limit"), params.take("cursor"));
    params.finish()?;
    let request = ListRequest {
        namespace: fields::namespace(app.config(), namespace)?,
        prefix: self::prefix(prefix.as_deref().unwrap_or_default())?.into(),
        after: cursor.map(|text| cursor::read(&text)).transpose()?,
        limit: limit.map_or(Ok(DEFAULT_LIMIT), |text| self::limit(&text))?,
    };
    let page = app.service().list(request).await?;
    Ok(reply::json(StatusCode::OK, &PageBody::new(&page, app.clock().wall())))
}

/// Nothing, or the beginning of some name: what no name can begin with is a mistake (C31).
pub(crate) fn prefix(text: &str) -> dlock_domain::Result<&str> {
    if text.len() > LockName::MAX_BYTES {
        return Err(LockError::invalid("prefix", "must be at most 512 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(LockError::invalid("prefix", "must not contain control characters"));
    }
    Ok(text)
}

/// Digits and nothing else: no sign, no blanks, no leading zeros.
fn limit(text: &str) -> dlock_domain::Result<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    match text.parse() {
        Ok(number) if digits && (1..=MAX_LIMIT).contains(&number) => Ok(number),
        _ => Err(LockError::invalid("limit", "must be an integer from 1 to 1000")),
    }
}
