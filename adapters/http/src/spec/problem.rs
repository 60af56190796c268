//! The problem document in the API's description.

use axum::http::StatusCode;
use dlock_domain::FencingToken;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        AllOfBuilder, Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Schema, SchemaFormat,
        schema::{SchemaType, Type},
    },
};

use crate::{info::InfoBody, problem::kind::Kind};

/// Every problem has these.
const ALWAYS: [&str; 5] = ["type", "title", "status", "detail", "retryable"];

/// The schema `Problem`, which those of the single failures narrow.
pub(crate) struct ProblemSchema;

impl PartialSchema for ProblemSchema {
    fn schema() -> RefOr<Schema> {
        let text = |what: &str| typed(Type::String).description(Some(what));
        let mut problem = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("An RFC 9457 problem document."))
            .property(
                "type",
                text("`urn:dlock:problem:` and the kind")
                    .format(Some(SchemaFormat::Custom("uri".into()))),
            )
            .property("title", text("The kind in words"))
            .property("status", typed(Type::Integer).minimum(Some(400)).maximum(Some(599)))
            .property("detail", text("The case at hand, for people"))
            .property(
                "retryable",
                typed(Type::Boolean).description(Some("Whether repeating the call can help")),
            )
            .property(
                "applied",
                text(
                    "Of calls that change something: `no`, it had no effect and never will; \
                     `unknown`, it may have had, or still may",
                )
                .enum_values(Some(["no", "unknown"])),
            )
            .property("field", text("The field or parameter that is wrong"))
            .property("limit", text("The configuration key of the limit that is reached"))
            .property("invariant", text("The promise that does not hold"))
            .property("holder", holder())
            .property("current_token", current_token());
        for member in ALWAYS {
            problem = problem.required(member);
        }
        problem.into()
    }
}

impl ToSchema for ProblemSchema {
    fn name() -> std::borrow::Cow<'static, str> {
        "Problem".into()
    }
}

/// A problem of this status and one of these kinds, with these members.
pub(super) fn of(status: StatusCode, kinds: &[Kind], members: &[&str]) -> RefOr<Schema> {
    let types = kinds.iter().map(|kind| format!("urn:dlock:problem:{}", kind.name));
    let mut narrowed = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("type", typed(Type::String).enum_values(Some(types)))
        .property("status", typed(Type::Integer).enum_values(Some([status.as_u16()])));
    for &member in members {
        narrowed = narrowed.required(member);
    }
    let base = Ref::from_schema_name(ProblemSchema::name());
    AllOfBuilder::new().item(base).item(narrowed).into()
}

fn typed(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind)
}

fn holder() -> OneOfBuilder {
    OneOfBuilder::new()
        .item(Object::with_type(Type::Null))
        .item(Ref::from_schema_name(InfoBody::name()))
        .description(Some("Who holds the lock, if that could still be seen"))
}

fn current_token() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
        .minimum(Some(1))
        .maximum(Some(FencingToken::MAX))
        .description(Some("The token of the live grant; `null` if nothing is held"))
}
