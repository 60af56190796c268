//! Values on the wire in the API's description: the rules of the domain (C2) as JSON Schema.
//!
//! JSON Schema counts characters where the domain counts bytes, so a long text that is not ASCII
//! can satisfy the schema and be refused all the same; the descriptions say so.

use dlock_domain::{OwnerId, Ttl};
use dlock_ports::AcquireRequest;
use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type},
};

/// Everything but control characters.
pub(crate) const NO_CONTROLS: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// Nor anything that hides text or turns its direction.
const PRINTABLE: &str = r"^[^\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+$";

const ID: &str = "^([0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$";

macro_rules! field {
    ($(#[doc = $doc:literal])+ $name:ident = $schema:expr) => {
        $(#[doc = $doc])+
        pub(crate) struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.description(Some(concat!($($doc),+).trim())).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}

field! {
    /// 1 to 512 bytes of UTF-8 without control characters. Opaque and compared byte for byte.
    LockName = text(dlock_domain::LockName::MAX_BYTES).min_length(Some(1)).pattern(Some(NO_CONTROLS)).examples([json!("nightly")])
}
field! {
    /// A group of locks with a token floor of its own.
    Namespace = text(63).pattern(Some("^[a-z0-9][a-z0-9._-]{0,62}$")).examples([json!("default")])
}
field! {
    /// 1 to 256 bytes of printable text: a label for people, and never part of a decision.
    Owner = text(OwnerId::MAX_BYTES).min_length(Some(1)).pattern(Some(PRINTABLE)).examples([json!("me")])
}
field! {
    /// 1 to 1024 bytes of printable text: why somebody revokes a lock.
    Reason = text(dlock_domain::Reason::MAX_BYTES).min_length(Some(1)).pattern(Some(PRINTABLE)).examples([json!("its host is gone")])
}
field! {
    /// A secret: whoever knows it can renew and release what the session holds. Answers write 32 lower-case hexadecimal digits.
    SessionId = text(36).min_length(Some(32)).pattern(Some(ID)).examples([json!("00112233445566778899aabbccddeeff")])
}
field! {
    /// The name of one acquire call: 128 random bits. Answers write 32 lower-case hexadecimal digits.
    AttemptId = text(36).min_length(Some(32)).pattern(Some(ID)).examples([json!("0f0e0d0c0b0a09080706050403020100")])
}
field! {
    /// A number that grows with every grant of a lock, exact in every JSON reader.
    FencingToken = integer(1, dlock_domain::FencingToken::MAX).examples([json!(1)])
}
field! {
    /// What every later token exceeds; 0 for none.
    TokenFloor = integer(0, dlock_domain::FencingToken::MAX).examples([json!(0)])
}
field! {
    /// A floor to raise to. More than 2^40 beyond the highest known token is refused.
    FloorWish = integer(0, dlock_domain::FencingToken::MAX - 1).examples([json!(1)])
}
field! {
    /// How long a lease lives without being kept alive: 1 s to 24 h, in milliseconds.
    TtlMs = integer(Ttl::MIN_MILLIS, Ttl::MAX_MILLIS).examples([json!(30_000)])
}
field! {
    /// How long to wait for a lock: up to 1 h, in milliseconds; 0 if absent.
    MaxWaitMs = integer(0, AcquireRequest::MAX_WAIT.as_secs() * 1_000).examples([json!(0)])
}

fn text(longest: usize) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).max_length(Some(longest))
}

fn integer(least: u64, greatest: u64) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
        .minimum(Some(least))
        .maximum(Some(greatest))
}
