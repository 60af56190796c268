//! Bodies that come in two forms, and query parameters: what derives cannot say.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, Required, Schema, Type,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::AdditionalProperties,
    },
};

/// An object of these members and no others.
pub(crate) fn closed() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
}

/// Adds members to an object.
pub(crate) trait Members: Sized {
    /// One that must be there.
    fn must<T: ToSchema>(self, name: &str) -> Self;
    /// One that may be there, or be `null`.
    fn may<T: ToSchema>(self, name: &str) -> Self;
    /// One that may be there, but only as `null`: it belongs to the other form.
    fn never(self, name: &str) -> Self;
}

impl Members for ObjectBuilder {
    fn must<T: ToSchema>(self, name: &str) -> Self {
        self.property(name, Ref::from_schema_name(T::name())).required(name)
    }

    fn may<T: ToSchema>(self, name: &str) -> Self {
        let value = OneOfBuilder::new()
            .item(Object::with_type(Type::Null))
            .item(Ref::from_schema_name(T::name()));
        self.property(name, value)
    }

    fn never(self, name: &str) -> Self {
        self.property(name, Object::with_type(Type::Null))
    }
}

/// One form or the other.
pub(crate) fn either(one: ObjectBuilder, other: ObjectBuilder) -> RefOr<Schema> {
    OneOfBuilder::new().item(one).item(other).into()
}

/// The schemas that `T` needs, itself included.
pub(crate) fn needs<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into(), T::schema()));
    T::schemas(schemas);
}

/// A query parameter.
pub(crate) fn query(
    name: &str,
    required: Required,
    description: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(required)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// A query parameter whose rules are a field's.
pub(crate) fn query_of<T: PartialSchema>(
    name: &str,
    required: Required,
    description: &str,
) -> Parameter {
    query(name, required, description, T::schema())
}
