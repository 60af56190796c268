//! The driver's rows and parameters as diesel's.

use std::{error::Error, num::NonZeroU32, ops::Range};

use diesel::{
    pg::{Pg, PgValue, TypeOidLookup},
    row::{Field, PartialRow, RowIndex, RowSealed},
};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

use crate::error::Failure;

/// One row of an answer.
pub(crate) struct Row {
    row: tokio_postgres::Row,
    types: Vec<Oid>,
}

/// The number of a column's type.
struct Oid(NonZeroU32);

impl TypeOidLookup for Oid {
    fn lookup(&self) -> NonZeroU32 {
        self.0
    }
}

/// A column, as it came.
struct Raw<'a>(Option<&'a [u8]>);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_type: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw)))
    }

    fn from_sql_null(_type: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_type: &Type) -> bool {
        true
    }
}

impl Row {
    /// # Errors
    /// A column without a type, which no server sends.
    pub(crate) fn new(row: tokio_postgres::Row) -> Result<Self, Failure> {
        let of = |column: &tokio_postgres::Column| NonZeroU32::new(column.type_().oid()).map(Oid);
        let types: Option<Vec<Oid>> = row.columns().iter().map(of).collect();
        let types = types.ok_or_else(|| Failure::unreadable("a column without a type"))?;
        Ok(Self { row, types })
    }
}

impl RowSealed for Row {}

impl<'a> diesel::row::Row<'a, Pg> for Row {
    type Field<'f>
        = Column<'f>
    where
        'a: 'f,
        Self: 'f;
    type InnerPartialRow = Self;

    fn field_count(&self) -> usize {
        self.types.len()
    }

    fn get<'b, I>(&'b self, index: I) -> Option<Self::Field<'b>>
    where
        'a: 'b,
        Self: RowIndex<I>,
    {
        self.idx(index).map(|index| Column { row: self, index })
    }

    fn partial_row(&self, range: Range<usize>) -> PartialRow<'_, Self::InnerPartialRow> {
        PartialRow::new(self, range)
    }
}

impl RowIndex<usize> for Row {
    fn idx(&self, index: usize) -> Option<usize> {
        (index < self.types.len()).then_some(index)
    }
}

impl<'n> RowIndex<&'n str> for Row {
    fn idx(&self, name: &'n str) -> Option<usize> {
        self.row.columns().iter().position(|column| column.name() == name)
    }
}

/// One column of a row.
pub(crate) struct Column<'a> {
    row: &'a Row,
    index: usize,
}

impl<'a> Field<'a, Pg> for Column<'a> {
    fn field_name(&self) -> Option<&str> {
        self.row.row.columns().get(self.index).map(tokio_postgres::Column::name)
    }

    fn value(&self) -> Option<PgValue<'_>> {
        let of = self.row.types.get(self.index)?;
        let raw: Raw<'_> = self.row.row.try_get(self.index).ok()?;
        raw.0.map(|raw| PgValue::new(raw, of))
    }
}

/// A parameter that diesel has written already.
#[derive(Debug)]
pub(crate) struct Parameter(pub(crate) Option<Vec<u8>>);

impl ToSql for Parameter {
    fn to_sql(
        &self,
        _type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match &self.0 {
            Some(bytes) => {
                out.extend_from_slice(bytes);
                IsNull::No
            }
            None => IsNull::Yes,
        })
    }

    fn accepts(_type: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
