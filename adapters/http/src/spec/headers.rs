//! Headers in the API's description.

use utoipa::openapi::{
    Components, HeaderBuilder, ObjectBuilder, Ref, RefOr, Required, Type,
    path::{Operation, ParameterBuilder, ParameterIn},
};

use crate::{request_id::X_REQUEST_ID, trace::TRACEPARENT};

/// Those of every answer that is ours.
pub(super) const EVERYWHERE: &[&str] = &[X_REQUEST_ID, "cache-control", "x-content-type-options"];

/// Name and meaning of each header of an answer.
const ANSWERED: &[(&str, &str)] = &[
    (X_REQUEST_ID, "The request's id: the client's own, or one that the server made"),
    ("cache-control", "`no-store`"),
    ("x-content-type-options", "`nosniff`"),
    ("retry-after", "After how many seconds to repeat"),
    ("allow", "The methods that this path has"),
    ("connection", "`close`"),
];

/// Name and meaning of each header that a request may have.
const ASKED: &[(&str, &str)] = &[
    (
        X_REQUEST_ID,
        "An id of the client's own for logs, 1 to 128 visible ASCII characters; anything else is \
         replaced by a new one",
    ),
    (TRACEPARENT, "W3C trace context; what is malformed is ignored"),
];

/// A reference to a header of an answer.
pub(super) fn reference(name: &str) -> Ref {
    Ref::new(format!("#/components/headers/{name}"))
}

/// Puts what is referred to where it is looked for.
pub(super) fn define(components: &mut Components) {
    for &(name, meaning) in ANSWERED {
        let kind = if name == "retry-after" { Type::Integer } else { Type::String };
        let header = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(kind)))
            .description(Some(meaning))
            .build();
        components.headers.insert(name.to_owned(), RefOr::T(header));
    }
    for &(name, meaning) in ASKED {
        // Any text: these two are never a reason to refuse a request.
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(meaning))
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build();
        components.parameters.insert(name.to_owned(), RefOr::T(parameter));
    }
}

/// Adds to a call what every request may have, and to its successes what every answer has.
pub(super) fn add(operation: &mut Operation) {
    let parameters = operation.parameters.get_or_insert_default();
    for (name, _) in ASKED {
        parameters.push(RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            for &name in EVERYWHERE {
                response.headers.insert(name.to_owned(), RefOr::Ref(reference(name)));
            }
        }
    }
}
