//! Rows for people: on a terminal as wide as that, with a line under the head and few colours;
//! elsewhere plain columns, a line a row, that other programs can take apart.
//!
//! Whatever users or servers have chosen is escaped: on a terminal all that would move the cursor,
//! hide text or turn it around; elsewhere control characters only, so that names stay themselves.

use comfy_table::{ColumnConstraint, ContentArrangement, Table as Grid, TableComponent, presets};

use super::out;
use crate::run::{escaped, shown};

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const END: &str = "\u{1b}[0m";

/// The narrowest width that is believed, and what is taken for one that is not known.
const NARROWEST: u16 = 20;
const USUAL: u16 = 80;

/// Numbers and times are not broken where there is room for long names beside them.
const SHORT: u16 = 11;
const ROOMY: u16 = 60;

/// How a line stands out where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Nothing is in the way.
    Good,
    /// Somebody is.
    Bad,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[33m",
        }
    }
}

/// An answer for people. Head, headline and foot are our own words; the rows need not be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// A line before everything.
    pub(crate) headline: Option<(Tone, &'static str)>,
    /// What the columns are called, if that is said.
    pub(crate) head: &'static [&'static str],
    /// The rows.
    pub(crate) rows: Vec<Vec<String>>,
    /// A line after everything.
    pub(crate) foot: Option<String>,
}

impl Table {
    /// Named values, one a row.
    pub(crate) fn pairs<const N: usize>(rows: [(&str, String); N]) -> Self {
        let rows = rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        Self { rows, ..Self::default() }
    }

    /// Prints it; answers `code`, or that of an answer that could not be written.
    pub(crate) fn print(&self, code: u8) -> u8 {
        match out::terminal_width() {
            Some(width) => out::coloured(&self.fitted(width), code),
            None => out::plain(self.plain().as_bytes(), code),
        }
    }

    /// The text for a terminal this wide, colours included; 0: it is not known.
    fn fitted(&self, width: u16) -> String {
        let mut text = String::new();
        if let Some((tone, words)) = self.headline {
            text.push_str(&format!("{}{words}{END}\n", tone.code()));
        }
        if !self.rows.is_empty() || !self.head.is_empty() {
            let mut grid = Grid::new();
            grid.load_preset(presets::NOTHING)
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(if width == 0 { USUAL } else { width.max(NARROWEST) });
            if !self.head.is_empty() {
                grid.set_header(self.head);
                // Only below the head, whose words are ours: so the line is found again.
                grid.set_style(TableComponent::HeaderLines, '-');
                grid.set_style(TableComponent::MiddleHeaderIntersections, '-');
            }
            for row in &self.rows {
                grid.add_row(row.iter().map(|cell| shown(cell)));
            }
            let roomy = width == 0 || width >= ROOMY;
            let widths = grid.column_max_content_widths();
            for (column, widest) in grid.column_iter_mut().zip(widths) {
                column.set_padding((0, 2));
                if roomy && widest <= SHORT {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
            let mut in_head = !self.head.is_empty();
            for line in grid.lines() {
                let line = line.trim_end();
                if !in_head {
                    text.push_str(line);
                } else if line.bytes().all(|byte| byte == b'-') {
                    in_head = false;
                    text.push_str(&format!("{DIM}{line}{END}"));
                } else {
                    text.push_str(&format!("{BOLD}{line}{END}"));
                }
                text.push('\n');
            }
        }
        text.extend(self.foot.iter().map(|foot| format!("{}\n", shown(foot))));
        text
    }

    /// Columns as wide as their widest cell, two blanks apart.
    fn plain(&self) -> String {
        let head = self.head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let body = self.rows.iter().map(|row| row.iter().map(|cell| escaped(cell)).collect());
        let rows: Vec<Vec<String>> =
            Some(head).filter(|head| !head.is_empty()).into_iter().chain(body).collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        text.extend(self.headline.map(|(_, words)| format!("{words}\n")));
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text.extend(self.foot.iter().map(|foot| format!("{foot}\n")));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> Table {
        Table {
            headline: Some((Tone::Bad, "not granted")),
            head: &["NAME", "OWNER"],
            rows: vec![
                vec!["a\u{202e}b\u{200b}".into(), "o\u{1b}[31m".into()],
                vec!["x".repeat(100), "语".repeat(50)],
            ],
            foot: Some("more".into()),
        }
    }

    #[test]
    fn plain_columns_are_a_line_a_row_and_names_stay_themselves() {
        let text = hostile().plain();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert_eq!((lines[0], lines[4]), ("not granted", "more"));
        assert!(lines[2].starts_with("a\u{202e}b\u{200b}  "), "{text}");
        assert!(lines[2].ends_with("o\\u{1b}[31m"), "{text}");
        let pairs = Table::pairs([("token", "7".into()), ("valid for", "1s".into())]);
        assert_eq!(pairs.plain(), "token      7\nvalid for  1s\n");
    }

    #[test]
    fn c33_on_a_terminal_nothing_moves_the_cursor_hides_or_turns_text() {
        let text = hostile().fitted(80);
        assert!(text.contains("a\\u{202e}b\\u{200b}"), "{text}");
        let mut ours = text;
        for code in [BOLD, DIM, END, Tone::Bad.code()] {
            ours = ours.replace(code, "");
        }
        assert!(ours.chars().all(|c| c == '\n' || dlock_domain::is_printable(c)), "{ours:?}");
    }

    #[test]
    fn on_a_terminal_no_line_is_wider_than_that() {
        for width in [20, 40, 60, 80, 200] {
            let text = anstream::adapter::strip_str(&hostile().fitted(width)).to_string();
            for line in text.lines() {
                let wide = line.chars().map(|c| if c > '\u{2e80}' { 2 } else { 1 });
                assert!(wide.sum::<u16>() <= width, "{width}: {line}");
            }
        }
        let unknown = anstream::adapter::strip_str(&hostile().fitted(0)).to_string();
        assert!(unknown.lines().any(|line| line.len() > 40 && line.len() <= 160), "{unknown}");
    }
}
