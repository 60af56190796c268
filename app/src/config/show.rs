//! Printing settings, and the table itself, for people.

use std::fmt::Write as _;

use super::settings::Settings;
use super::table::TABLE;

/// Every key with its effective value and where that came from; secrets are hidden.
#[must_use]
pub fn show(settings: &Settings) -> String {
    let rows: Vec<[String; 3]> = settings
        .all()
        .iter()
        .map(|setting| {
            let value = match &setting.value {
                Some(_) if setting.key.secret => "(hidden)".to_owned(),
                Some(value) => value.clone(),
                None => "-".to_owned(),
            };
            [setting.key.name.to_owned(), value, setting.origin.to_string()]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (names, values) = (width(0), width(1));
    let mut text = String::new();
    for [name, value, origin] in &rows {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name:names$}  {value:values$}  {origin}");
    }
    text
}

/// The table as Markdown, for the documentation.
#[must_use]
pub fn documentation() -> String {
    let mut text = String::from(
        "| key | variable | flag | default | meaning |\n| --- | --- | --- | --- | --- |\n",
    );
    for key in TABLE {
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
        let text = show(&settings);
        assert_eq!(text.lines().count(), TABLE.len());
        let line = text.lines().find(|line| line.starts_with("http.listen")).unwrap();
        assert!(line.contains("127.0.0.1:3") && line.ends_with("--listen"), "{line}");
        assert_eq!(documentation().lines().count(), TABLE.len() + 2);
    }
}
