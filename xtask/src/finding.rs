//! One violation of one rule.

use std::fmt;

/// What a rule found, where, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The file, relative to the workspace root, with forward slashes.
    pub path: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub mend: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, path, line, what, mend } = self;
        write!(f, "{rule}: {path}:{line}: {what} -> {mend}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_rule_place_trouble_and_mend() {
        let finding = Finding {
            rule: "layers",
            path: "domain/Cargo.toml".into(),
            line: 7,
            what: "too much".into(),
            mend: "take it out".into(),
        };
        assert_eq!(finding.to_string(), "layers: domain/Cargo.toml:7: too much -> take it out");
    }
}
