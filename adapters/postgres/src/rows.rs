//! The shapes of answers.

use diesel::{
    QueryableByName,
    deserialize::{self, QueryableByName as Build},
    pg::Pg,
    row::NamedRow,
    sql_types::{BigInt, Binary, Bool, Nullable, Text},
};
use dlock_domain::{Moment, OwnerId, Result, Session, SessionId, Ttl};

use crate::codec;

/// A statement whose rows say nothing but that they are there.
pub(crate) struct There;

impl Build<Pg> for There {
    fn build<'a>(_row: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Ok(Self)
    }
}

/// One number.
#[derive(QueryableByName)]
pub(crate) struct Number {
    #[diesel(sql_type = BigInt)]
    pub(crate) number: i64,
}

/// A session's own row.
#[derive(Clone, QueryableByName)]
pub(crate) struct SessionRow {
    #[diesel(sql_type = Text)]
    pub(crate) owner: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) ttl_ms: i64,
    #[diesel(sql_type = Bool)]
    pub(crate) private: bool,
    #[diesel(sql_type = BigInt)]
    pub(crate) left_ms: i64,
}

impl SessionRow {
    /// The session whose lease a request that left at `sent` has set.
    pub(crate) fn renewed(&self, id: SessionId, sent: Moment) -> Result<Session> {
        let (owner, ttl) = self.read()?;
        Ok(Session { id, owner, ttl, client_deadline: sent.holder_deadline(ttl, ttl) })
    }

    /// The session as a look that left at `sent` found it.
    pub(crate) fn looked(&self, id: SessionId, sent: Moment) -> Result<Session> {
        let (owner, ttl) = self.read()?;
        let left = codec::left(self.left_ms);
        Ok(Session { id, owner, ttl, client_deadline: sent.holder_deadline_from_look(left, ttl) })
    }

    fn read(&self) -> Result<(OwnerId, Ttl)> {
        let of = "a session";
        Ok((codec::owner(&self.owner, of)?, codec::ttl(self.ttl_ms, of)?))
    }
}

/// Who holds a lock: the session's columns are absent where nobody does.
#[derive(QueryableByName)]
pub(crate) struct HolderRow {
    #[diesel(sql_type = BigInt)]
    pub(crate) fence: i64,
    #[diesel(sql_type = Nullable<Binary>)]
    pub(crate) attempt: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Binary>)]
    pub(crate) session: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) owner: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) ttl_ms: Option<i64>,
    #[diesel(sql_type = Nullable<Bool>)]
    pub(crate) private: Option<bool>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) left_ms: Option<i64>,
    #[diesel(sql_type = Bool)]
    pub(crate) settled: bool,
}

impl HolderRow {
    /// The session that holds, if one does.
    pub(crate) fn session(&self, of: &str) -> Result<Option<(SessionId, SessionRow)>> {
        let Some(id) = &self.session else { return Ok(None) };
        match (&self.owner, self.ttl_ms, self.private, self.left_ms) {
            (Some(owner), Some(ttl_ms), Some(private), Some(left_ms)) => {
                let row = SessionRow { owner: owner.clone(), ttl_ms, private, left_ms };
                Ok(Some((codec::session_id(id, of)?, row)))
            }
            _ => Err(codec::unreadable(of, "half a session")),
        }
    }
}

/// What an attempt to grant came to.
#[derive(QueryableByName)]
pub(crate) struct GrantRow {
    #[diesel(embed)]
    pub(crate) holder: HolderRow,
    /// Absent: the row of `dlock_meta` is gone.
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) floor: Option<i64>,
    #[diesel(sql_type = Bool)]
    pub(crate) same_history: bool,
    #[diesel(sql_type = Bool)]
    pub(crate) fit: bool,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) drawn: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) granted: Option<i64>,
}

/// What a revoke came to.
#[derive(QueryableByName)]
pub(crate) struct RevokeRow {
    #[diesel(sql_type = BigInt)]
    pub(crate) fence: i64,
    #[diesel(sql_type = Bool)]
    pub(crate) live: bool,
    /// Absent: the row of `dlock_meta` is gone.
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) floor: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) drawn: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) granted: Option<i64>,
}

/// A grant whose lease was moved.
#[derive(QueryableByName)]
pub(crate) struct ExtendRow {
    #[diesel(sql_type = Binary)]
    pub(crate) session: Vec<u8>,
    #[diesel(sql_type = Text)]
    pub(crate) owner: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) ttl_ms: i64,
}

/// A lock that is held, or was until now, seen from outside.
#[derive(QueryableByName)]
pub(crate) struct InfoRow {
    #[diesel(sql_type = Text)]
    pub(crate) name: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) fence: i64,
    #[diesel(sql_type = Binary)]
    pub(crate) session: Vec<u8>,
    #[diesel(sql_type = Text)]
    pub(crate) owner: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) left_ms: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) acquired_ms: Option<i64>,
}

impl InfoRow {
    /// Whether nothing is left of its lease, as far as those see who only look: a keep-alive that is
    /// being committed hides what it keeps.
    pub(crate) fn may_have_ended(&self) -> bool {
        self.left_ms <= 0
    }
}

/// A session, and one of its grants.
#[derive(QueryableByName)]
pub(crate) struct LookRow {
    #[diesel(sql_type = Text)]
    pub(crate) owner: String,
    #[diesel(sql_type = BigInt)]
    pub(crate) ttl_ms: i64,
    #[diesel(sql_type = BigInt)]
    pub(crate) left_ms: i64,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) namespace: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    pub(crate) name: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    pub(crate) fence: Option<i64>,
    #[diesel(sql_type = Nullable<Binary>)]
    pub(crate) attempt: Option<Vec<u8>>,
}

/// Whether a closed session was live.
#[derive(QueryableByName)]
pub(crate) struct LiveRow {
    #[diesel(sql_type = Bool)]
    pub(crate) live: bool,
}

/// What settling an attempt came to.
#[derive(QueryableByName)]
pub(crate) struct ForgetRow {
    #[diesel(sql_type = BigInt)]
    pub(crate) number: i64,
    #[diesel(sql_type = Bool)]
    pub(crate) enough: bool,
}
