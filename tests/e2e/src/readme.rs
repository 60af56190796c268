//! The examples of a page that are marked to be run.
//!
//! A marked example is a fenced `sh` block with an HTML comment on the line before it:
//! `<!-- test: NAME -->`. In it, a line `# => TEXT` says that TEXT is part of what is printed.

/// One marked example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The name in its mark.
    pub name: String,
    /// Its code, line ends included.
    pub code: String,
}

/// All marked examples of a page, in order.
///
/// # Errors
/// In words, when a mark stands before anything but a `sh` block, a block does not end, or a name
/// is used twice: an example that is silently left out would rot.
pub fn examples(page: &str) -> Result<Vec<Example>, String> {
    let mut found: Vec<Example> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(name) = mark(line) else { continue };
        if lines.next().map(str::trim_end) != Some("```sh") {
            return Err(format!("after `test: {name}` comes no ```sh block"));
        }
        if found.iter().any(|example| example.name == name) {
            return Err(format!("`test: {name}` is there twice"));
        }
        let mut code = String::new();
        loop {
            match lines.next() {
                Some(line) if line.trim_end() == "```" => break,
                Some(line) => code.extend([line, "\n"]),
                None => return Err(format!("the block of `test: {name}` does not end")),
            }
        }
        found.push(Example { name: name.to_owned(), code });
    }
    Ok(found)
}

/// The texts that code says it prints, in order.
pub fn promised(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| line.trim_start().strip_prefix("# =>")).map(str::trim)
}

fn mark(line: &str) -> Option<&str> {
    let inside = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?;
    Some(inside.trim().strip_prefix("test:")?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_blocks_are_found_and_others_are_not() {
        let page = "# dlock\n```sh\nrm -rf x\n```\n<!-- a remark -->\n\n<!-- test: one -->\n```sh\n\
                    echo 1\n\n# => 1\n```\ntext\n<!-- test: two -->\n```sh\necho 2\n```\n";
        let found = examples(page).unwrap();
        let found: Vec<_> = found.iter().map(|e| (e.name.as_str(), e.code.as_str())).collect();
        assert_eq!(found, [("one", "echo 1\n\n# => 1\n"), ("two", "echo 2\n")]);
    }

    #[test]
    fn a_mark_that_marks_nothing_is_an_error() {
        for page in [
            "<!-- test: a -->\n",
            "<!-- test: a -->\n\n```sh\n```\n",
            "<!-- test: a -->\n```toml\n```\n",
            "<!-- test: a -->\n```sh\necho\n",
            "<!-- test: a -->\n```sh\n```\n<!-- test: a -->\n```sh\n```\n",
        ] {
            assert!(examples(page).unwrap_err().contains("`test: a`"), "{page}");
        }
        assert_eq!(examples("nothing here"), Ok(vec![]));
    }

    #[test]
    fn promises_are_read_in_order() {
        let code = "a\n# => one two\n  # =>three\n# a remark\necho '# => no'\n";
        assert_eq!(promised(code).collect::<Vec<_>>(), ["one two", "three"]);
    }
}
