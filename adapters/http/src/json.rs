//! Bodies, read strictly and within bounds (C34, trap 45).

use core::{fmt, marker::PhantomData, str};

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::{app::App, depth, problem::Problem};

/// A request's body as a JSON object.
///
/// Refused in this order: 415 for a type or an encoding that is not plain JSON; 413 when too
/// large; 408 when too slow; 400 for what is not UTF-8, not JSON, followed by something, or nested
/// too deeply; 422, naming the field, for JSON of another shape.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        check_type(request.headers())?;
        let reading = read(request, app.config().max_body);
        // A timer of the network and not of a lease, hence tokio's.
        let body = tokio::time::timeout(app.config().body_read_timeout, reading)
            .await
            .map_err(|_| Problem::too_slow())??;
        let text = str::from_utf8(&body)
            .map_err(|_| Problem::malformed_body("the body is not UTF-8".into()))?;
        parse(text).map(Self)
    }
}

fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let plain = match (given.next(), given.next()) {
        (Some(only), None) => only.to_str().is_ok_and(is_json),
        _ => false,
    };
    if !plain {
        return Err(Problem::wrong_type("the content type must be application/json"));
    }
    // Decompressing what a stranger sends is work without bound.
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Problem::wrong_type("the body must not be compressed"));
    }
    Ok(())
}

fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    essence.eq_ignore_ascii_case("application/json")
        && parts.all(|parameter| {
            let parameter = parameter.to_ascii_lowercase();
            matches!(parameter.as_str(), "charset=utf-8" | "charset=\"utf-8\"")
        })
}

async fn read(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let body: Body = request.into_body();
    // Told beforehand: nothing has to be read to refuse it.
    let announced = hyper::body::Body::size_hint(&body).lower();
    if usize::try_from(announced).map_or(true, |bytes| bytes > limit) {
        return Err(Problem::too_large(limit));
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Problem::too_large(limit)),
        Err(_) => Err(Problem::malformed_body("the body ended too early".into())),
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    // Once for the syntax, so that the verdict does not depend on where the first wrong field
    // stands. This pass keeps nothing and does not recurse.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(Problem::malformed_body(format!("the body is not JSON: {error}").into()));
    }
    if depth::is_too_deep(text) {
        return Err(Problem::malformed_body("the body is nested too deeply".into()));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, Object<T>>(&mut reader) {
        Ok(Object(value)) => Ok(value),
        Err(error) => {
            let path = error.path().to_string();
            Err(shape(&path, &error.inner().to_string()))
        }
    }
}

/// The problem of a wrong shape: which field, and what is wrong with it.
fn shape(path: &str, message: &str) -> Problem {
    // The path of a duplicate ends at the object that has it twice.
    let twice = message.strip_prefix("duplicate field `").and_then(|rest| rest.split_once('`'));
    let field = match (path, twice) {
        (".", None) => return Problem::misshapen("the body must be a JSON object".into()),
        (".", Some((field, _))) => field.to_owned(),
        (parent, Some((field, _))) => format!("{parent}.{field}"),
        (path, None) => path.to_owned(),
    };
    Problem::invalid(field, message.to_owned())
}

/// A value that is written as a JSON object: serde would read a struct from an array too.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn content_types_are_read_leniently_and_judged_strictly() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/jsonp",
            "application/json; charset=utf-16",
            "application/json, text/plain",
            "application/problem+json",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
