//! Printing settings, and the table itself, for people.

use std::fmt::Write as _;

use super::settings::{Setting, Settings};
use super::table::TABLE;

/// Every key with its effective value and where that came from, a row each; secrets are hidden.
#[must_use]
pub fn rows(settings: &Settings) -> Vec<[String; 3]> {
    settings.all().iter().map(row).collect()
}

/// A setting as one of the rows.
pub(super) fn row(setting: &Setting) -> [String; 3] {
    let value = match &setting.value {
        Some(_) if setting.key.secret => "(hidden)".to_owned(),
        Some(value) => value.clone(),
        None => "-".to_owned(),
    };
    [setting.key.name.to_owned(), value, setting.origin.to_string()]
}

/// The table as Markdown, for the documentation.
#[must_use]
pub fn documentation() -> String {
    let mut text = String::from(
        "| key | variable | flag | default | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for key in TABLE.iter() {
        let code = |text: &str| format!("`{text}`");
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} | {} | {} |",
            key.name,
            key.variable(),
            key.flag.map_or_else(|| "–".into(), code),
            key.default.map_or_else(|| "–".into(), code),
            key.meaning,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;

    #[test]
    fn every_key_is_shown_with_its_origin() {
        let settings = Settings::load(&Sources {
            flags: vec![("http.listen", "--listen", "127.0.0.1:3".into())],
            ..Sources::default()
        })
        .unwrap();
        let rows = rows(&settings);
        assert_eq!(rows.len(), TABLE.len());
        let row = rows.iter().find(|row| row[0] == "http.listen").unwrap();
        assert_eq!(row[1..], ["127.0.0.1:3", "--listen"]);
        assert_eq!(documentation().lines().count(), TABLE.len() + 2);
    }
}
